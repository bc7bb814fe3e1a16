package jinja

// node is a statement, expr an expression. Every node that can fail knows its line.
type (
	node interface{ nodeLine() int }
	expr interface{ exprLine() int }

	pos int // line of a node, 1-based
)

func (p pos) nodeLine() int { return int(p) }
func (p pos) exprLine() int { return int(p) }

// Statements.
type (
	textNode struct {
		pos
		text string
	}
	outputNode struct {
		pos
		value expr
	}
	ifNode struct {
		pos
		conds  []expr // one per branch
		bodies [][]node
		orElse []node
	}
	forNode struct {
		pos
		target       target
		iter, filter expr // filter may be nil
		body, orElse []node
		recursive    bool
	}
	setNode struct {
		pos
		target target
		value  expr
	}
	setBlockNode struct {
		pos
		target  target
		filters []*filterExpr
		body    []node
	}
	macroNode struct {
		pos
		name     string
		params   []string
		defaults []expr // aligned with the end of params
		body     []node
		// What the body mentions decides what a call accepts, as in the reference.
		usesCaller, usesVarargs, usesKwargs bool
	}
	callNode struct {
		pos
		caller *macroNode
		call   *callExpr
	}
	filterBlockNode struct {
		pos
		filters []*filterExpr
		body    []node
	}
	scopeNode struct {
		pos
		body []node
	} // generation and block tags
	withNode struct {
		pos
		targets []target
		values  []expr
		body    []node
	}
	breakNode    struct{ pos }
	continueNode struct{ pos }
)

// target is what set, for and with assign to: a name, an attribute of a namespace, or a tuple of targets.
type target struct {
	name, attr string
	tuple      []target
	isTuple    bool
}

// Expressions.
type (
	constExpr struct {
		pos
		value Value
	}
	nameExpr struct {
		pos
		name string
	}
	listExpr struct {
		pos
		items []expr
		tuple bool
	}
	dictExpr struct {
		pos
		keys, values []expr
	}
	attrExpr struct {
		pos
		obj  expr
		name string
	}
	itemExpr struct {
		pos
		obj, key expr
	}
	sliceExpr struct {
		pos
		start, stop, step expr
	} // only as the key of an itemExpr
	callExpr struct {
		pos
		fn   expr
		args argExprs
	}
	argExprs struct {
		list   []expr
		names  []string // of keyword values
		values []expr
		star   expr // *args, may be nil
		star2  expr // **kwargs, may be nil
	}
	filterExpr struct {
		pos
		obj  expr // nil in filter blocks
		name string
		args argExprs
	}
	testExpr struct {
		pos
		obj  expr
		name string
		args argExprs
	}
	binExpr struct {
		pos
		op   string
		a, b expr
	}
	logicExpr struct {
		pos
		and  bool
		a, b expr
	}
	concatExpr struct {
		pos
		items []expr
	}
	compareExpr struct {
		pos
		first expr
		ops   []string
		rest  []expr
	}
	unaryExpr struct {
		pos
		op byte
		a  expr
	} // '-', '+', '!' for not
	condExpr struct {
		pos
		cond, then, orElse expr
	} // orElse may be nil
)
