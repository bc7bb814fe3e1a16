// Package grammar makes allowed-token masks: after every token it tells which tokens may come next, so that what a model writes
// keeps to a form. Package generate asks it and hands the mask to the engine. It knows no tokenizer, no template and no markup
// but what it is told.
//
// # Making a grammar
//
// A Builder makes expressions over bytes, and rules, which are named expressions that may refer to each other and to themselves:
//
//	b := grammar.NewBuilder()
//	list := b.Rule("list") // defined below: it is in itself
//	more := b.Repeat(b.Seq(b.Literal(", "), b.Ref(list)), 0, 9)
//	b.Define(list, b.Seq(b.Literal("["), b.Optional(b.Seq(b.Ref(list), more)), b.Literal("]")))
//	g, err := b.Compile(list)
//
// Expressions without references are regular. Only these may be intersected and complemented (And, Not, Except), and only these
// tell at once what they match (Matches, IsNever). Equal expressions are one, so parts may be made again wherever they are
// needed; a part of many others is better a rule of its own. Where a text is matched in several ways all are followed at once.
//
// When to make a rule rather than an expression: for what contains itself, and for what ends by itself, such as a string, an
// array or an object of JSON. What a token may be within a rule is remembered for the rule, wherever it is referred to and in
// whichever grammar: give the same rule the same name. What may go on where it may end, such as a number or a word, is better put
// into the expression around it; Compile does that for small rules that are regular.
//
// Compile leaves out what can never end, so an expression that turns out to match nothing needs no care: an optional member whose
// value is Never is not there. What is wrong or too large is an error of Compile.
//
// # Following it
//
// A Matcher follows one output (Accept), tells which tokens may come next (Allowed) and which bytes must (Forced), and goes back
// (Rollback). All ways to read what was written are followed at once. A mask is put together from what is remembered of a Vocab:
// for each state of a rule the tokens that stay within it, and those that leave it, whose rest is tried with what follows there.
// So a mask costs microseconds where its state was met before, in any grammar and by anybody; met for the first time, it costs a
// walk through the vocabulary as far as tokens fit. All work is counted on a Budget.
package grammar
