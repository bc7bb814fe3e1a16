package dialect

import (
	"slices"

	"hearth/internal/schema"
)

// fits tells whether complete arguments are what a tool takes: all that it requires, of the types and values that it declares
// at every depth, and no others unless its schema says that there may be, or declares none. What takes too much work to tell
// does not fit.
func (s *toolset) fits(tool, args string) bool {
	v, err := schema.Parse([]byte(args))
	if err != nil || v.Kind() != schema.Object || !s.has(tool) {
		return false
	}
	of := s.of(tool)
	return of == nil && s.reading.left > 0 || of != nil && of.declares(v.Members()) && of.holds(of.root, v, 0)
}

// declares tells whether an alternative has a place for all members.
func (a *argType) declares(members []schema.Node) bool {
	return slices.ContainsFunc(a.alts, func(alt []*schema.Node) bool {
		for i := range members {
			closed, has := false, false
			for _, node := range alt {
				subs, none := a.memberOf(node, members[i].Key)
				closed, has = closed || none, has || len(subs) > 0
			}
			if closed && !has || !a.spend(1+len(alt)) {
				return false
			}
		}
		return true
	})
}

// holds tells whether a value is what a schema says.
func (a *argType) holds(node, v *schema.Node, depth int) bool {
	if node.Kind() != schema.Object {
		return !node.Is(false)
	}
	if depth > 2*maxJSONDepth || !a.spend(1) {
		return false
	}
	if v.Kind() == schema.Null && node.Member("nullable").Is(true) {
		return true
	}
	if ts := a.ownTypes(node); ts&valueTypes(v) == 0 {
		return false
	}
	if enum := node.Member("enum").Elements(); len(enum) > 0 && !a.among(enum, v) {
		return false
	}
	if c := node.Member("const"); c != nil && !a.equal(c, v) {
		return false
	}
	if node.Member("$ref") != nil {
		if to := a.follow(node); to != nil && !a.holds(to, v, depth+1) {
			return false
		}
	}
	all := node.Member("allOf").Elements()
	for i := range all {
		if !a.holds(&all[i], v, depth+1) {
			return false
		}
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list := node.Member(key).Elements(); len(list) > 0 && !a.anyHolds(list, v, depth+1) {
			return false
		}
	}
	return a.membersHold(node, v, depth+1) && a.elementsHold(node, v, depth+1)
}

func (a *argType) anyHolds(list []schema.Node, v *schema.Node, depth int) bool {
	for i := range list {
		if a.holds(&list[i], v, depth) {
			return true
		}
	}
	return false
}

func (a *argType) membersHold(node, v *schema.Node, depth int) bool {
	if v.Kind() != schema.Object {
		return true
	}
	required, members := node.Member("required").Elements(), v.Members()
	if !a.spend(len(required) + len(members)) {
		return false
	}
	for i := range required {
		if name, ok := required[i].Str(); ok && v.Member(name) == nil {
			return false
		}
	}
	closed := node.Member("additionalProperties").Is(false)
	for i := range members {
		subs, none := a.memberOf(node, members[i].Key)
		if none && closed {
			return false
		}
		for _, sub := range subs {
			if !a.holds(sub, &members[i], depth) {
				return false
			}
		}
	}
	return true
}

func (a *argType) elementsHold(node, v *schema.Node, depth int) bool {
	list := v.Elements()
	for i := range list {
		subs, none := itemOf(node, i)
		if none || !a.spend(1) {
			return false
		}
		for _, sub := range subs {
			if !a.holds(sub, &list[i], depth) {
				return false
			}
		}
	}
	return true
}

func (a *argType) among(list []schema.Node, v *schema.Node) bool {
	for i := range list {
		if a.equal(&list[i], v) {
			return true
		}
	}
	return false
}

// equal tells whether two values are the same, numbers by what they come to.
func (a *argType) equal(x, y *schema.Node) bool {
	if !a.spend(1) || x.Kind() != y.Kind() || len(x.Items) != len(y.Items) {
		return false
	}
	if x.Kind() == schema.Number {
		n, _ := x.Float()
		m, _ := y.Float()
		return n == m
	}
	for i := range x.Items {
		if x.Items[i].Key != y.Items[i].Key || !a.equal(&x.Items[i], &y.Items[i]) {
			return false
		}
	}
	return x.Text == y.Text
}

// valueTypes are the types that a value is of.
func valueTypes(v *schema.Node) types {
	if ts := typeOf(v); ts != typeInteger {
		return ts
	}
	return typeInteger | typeNumber
}
