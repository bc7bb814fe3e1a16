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
		captured     bool // a macro or call block inside keeps the scope of its iteration
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
		sym      int
		params   []string
		syms     []int  // of params
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
	sym        int
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
		sym     int
		missing Value // a global, or undefined
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
		obj expr
		member
	}
	itemExpr struct {
		pos
		obj, key expr
		*member  // of a key that is a literal string, else nil
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
		fn   filter
		args argExprs
	}
	testExpr struct {
		pos
		obj  expr
		fn   test
		args argExprs
	}
	binExpr struct {
		pos
		op   string
		a, b expr
	}
	sumExpr struct {
		pos
		items  []expr // two or more, added from the left
		closed bool   // stands in parentheses: what is added next does not belong to it
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

// member is a name that is looked up in objects, with what can be known of it beforehand.
type member struct {
	name     string
	ofString stringMethod // the method of strings of that name, or nil
	ofDict   dictMethod   // the method of dicts of that name, or nil
	own      bool         // every dict has an attribute of that name, if only to refuse it
	missing  Value        // what it is in a dict that lacks it
}

func newMember(name string) member {
	_, own := new(renderer).method(NewDict(), name)
	return member{name: name, ofString: stringMethods[name], ofDict: dictMethods[name], own: own,
		missing: missingAttr(NewDict(), name)}
}
