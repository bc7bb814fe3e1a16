package grammar

// OneOf is the grammar whose texts are these, of which there may be thousands.
func OneOf(texts ...string) (*Grammar, error) {
	b := NewBuilder()
	root := b.Rule("choice")
	b.Define(root, b.Choice(texts...))
	return b.Compile(root)
}
