package main

import (
	"bytes"
	"fmt"
)

// level is an instruction set: its routines end in its name.
type level struct {
	name                 string
	scores, values       int              // the most rows of the tile routines
	rowScores, rowValues func(string) int // the most queries of the routines without a tile, by type
}

var levels = []level{
	{"AVX2", scoreRows, valueRows, rowQueries, rowQueries},
	{"AVX512", scoreRows512, valueRows512, func(string) int { return scoreQueries512 }, valueQueries512},
}

// goTable declares the routines and the calls by number of queries and by type. Calls go through a switch because a call
// through a function value would make its argument escape.
func goTable() []byte {
	var b bytes.Buffer
	b.WriteString(header + "package kernel\n\n")
	for _, l := range levels {
		l.limits(&b)
		l.byRows(&b, "Scores", l.scores)
		l.byRows(&b, "Values", l.values)
		for _, name := range []string{"Softmax", "Softcap"} {
			fmt.Fprintf(&b, "\n//go:noescape\nfunc attn%s%s(x *attnArgs)\n", name, l.name)
		}
		l.widen(&b)
		l.byType(&b, "Score", l.rowScores)
		l.byType(&b, "Value", l.rowValues)
	}
	halfTable(&b)
	codeTable(&b)
	i16Table(&b)
	i16Table256(&b)
	return b.Bytes()
}

// halfTable declares the routines on bfloat16 numbers and the calls by shape.
func halfTable(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// What the routines on bfloat16 numbers take together at most: rows of sums, and queries of rows as they are stored.\nconst halfTogether, halfQueries = %d, %d\n", halfRows, halfQueries)
	rowsOf(b, "halfArgs", "HalfProducts4", "attnHalfProducts%dx4AVX512", halfRows)
	rowsOf(b, "halfArgs", "HalfProducts2", "attnHalfProducts%dx2AVX512", halfRows)
	rowsOf(b, "halfArgs", "FloatProducts", "attnFloatProducts%dAVX512", halfRows)
	rowsOf(b, "halfArgs", "HalfScoreRows", "attnHalfScoreRows%dAVX512", halfQueries)
	rowsOf(b, "halfArgs", "HalfValueRows", "attnHalfValueRows%dAVX512", halfQueries)
	for _, name := range []string{"Turn", "HalfValues4", "HalfValues2", "HalfSoftmax1", "HalfSoftmax2", "HalfSoftmax4"} {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attn%sAVX512(x *halfArgs)\n", name)
	}
}

// codeTable declares those on codes.
func codeTable(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// What the routines on codes take together at most: rows of sums, and queries of rows as they are stored.\nconst codesTogether, codeQueries = %d, %d\n", codeRows, codeQueries)
	rowsOf(b, "codeArgs", "CodeScores", "attnCodeScores%dAVX512", codeRows)
	rowsOf(b, "codeArgs", "CodeValues", "attnCodeValues%dAVX512", codeRows)
	rowsOf(b, "codeArgs", "CodeScoreRows", "attnCodeScoreRows%dAVX512", codeQueries)
	rowsOf(b, "codeArgs", "CodeValueRows", "attnCodeValueRows%dAVX512", codeQueries)
	for _, name := range []string{"Scales", "Query", "Keys", "Lines", "Softmax1", "Softmax2", "Softmax4"} {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attnCode%sAVX512(x *codeArgs)\n", name)
	}
}

// i16Table declares those on whole numbers.
func i16Table(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// What the routines on whole numbers take together at most: rows of sums, and queries of rows as they are stored.\nconst i16Together, i16Queries = %d, %d\n", i16Rows, i16Queries)
	rowsOf(b, "i16Args", "I16Scores", "attnI16Scores%dAVX512", i16Rows)
	rowsOf(b, "i16Args", "I16Values", "attnI16Values%dAVX512", i16Rows)
	rowsOf(b, "i16Args", "I16ScoreRows", "attnI16ScoreRows%dAVX512", i16Queries)
	rowsOf(b, "i16Args", "I16ValueRows", "attnI16ValueRows%dAVX512", i16Queries)
	for _, name := range []string{"Steps", "Numbers", "Keys", "Lines", "Softmax1", "Softmax2", "Softmax4"} {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attnI16%sAVX512(x *i16Args)\n", name)
	}
}

// i16Table256 declares those of AVX2.
func i16Table256(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// What those of AVX2 take together.\nconst shortTogether, shortQueries = %d, %d\n", shortRows, shortQueries)
	rowsOf(b, "i16Args", "ShortScores", "attnI16Scores%dAVX2", shortRows)
	rowsOf(b, "i16Args", "ShortValues", "attnI16Values%dAVX2", shortRows)
	rowsOf(b, "i16Args", "VNNIScores", "attnI16Scores%dAVXVNNI", shortRows)
	rowsOf(b, "i16Args", "VNNIValues", "attnI16Values%dAVXVNNI", shortRows)
	rowsOf(b, "i16Args", "ShortScoreRows", "attnI16ScoreRows%dAVX2", shortQueries)
	rowsOf(b, "i16Args", "ShortValueRows", "attnI16ValueRows%dAVX2", shortQueries)
	for _, name := range []string{"Numbers", "Steps", "Keys", "Lines", "Softmax"} {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attnI16%sAVX2(x *i16Args)\n", name)
	}
}

// rowsOf declares routines on some rows and the call that picks one.
func rowsOf(b *bytes.Buffer, args, call, name string, most int) {
	fmt.Fprintf(b, "\nfunc call%s(rows int, x *%s) {\n\tswitch rows {\n", call, args)
	for rows := 1; rows <= most; rows++ {
		fmt.Fprintf(b, "\tcase %d:\n\t\t%s(x)\n", rows, fmt.Sprintf(name, rows))
	}
	b.WriteString("\t}\n}\n")
	for rows := 1; rows <= most; rows++ {
		fmt.Fprintf(b, "\n//go:noescape\nfunc %s(x *%s)\n", fmt.Sprintf(name, rows), args)
	}
}

func (l level) limits(b *bytes.Buffer) {
	fmt.Fprintf(b, "\n// The most queries that the routines of %s take together: of a widened tile, and of rows as they are stored.\n", l.name)
	fmt.Fprintf(b, "var attn%s = attnLimits{scores: %d, values: %d", l.name, l.scores, l.values)
	byType := func(name string, most func(string) int) {
		fmt.Fprintf(b, ", %s: [...]int{", name)
		for _, t := range types {
			fmt.Fprintf(b, "Cache%s: %d, ", t, most(t))
		}
		b.WriteString("}")
	}
	byType("rowScores", l.rowScores)
	byType("rowValues", l.rowValues)
	b.WriteString("}\n")
}

// byRows calls a tile routine.
func (l level) byRows(b *bytes.Buffer, what string, most int) {
	fmt.Fprintf(b, "\nfunc call%s%s(rows int, x *attnArgs) {\n\tswitch rows {\n", what, l.name)
	for r := 1; r <= most; r++ {
		fmt.Fprintf(b, "\tcase %d:\n\t\tattn%s%d%s(x)\n", r, what, r, l.name)
	}
	b.WriteString("\t}\n}\n")
	for r := 1; r <= most; r++ {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attn%s%d%s(x *attnArgs)\n", what, r, l.name)
	}
}

func (l level) widen(b *bytes.Buffer) {
	fmt.Fprintf(b, "\nfunc callWiden%s(t CacheType, x *widenArgs) {\n\tswitch t {\n", l.name)
	for _, t := range types {
		fmt.Fprintf(b, "\tcase Cache%s:\n\t\tattnWiden%s%s(x)\n", t, t, l.name)
	}
	b.WriteString("\t}\n}\n")
	for _, t := range types {
		fmt.Fprintf(b, "\n//go:noescape\nfunc attnWiden%s%s(x *widenArgs)\n", t, l.name)
	}
}

// byType calls a routine on rows as they are stored.
func (l level) byType(b *bytes.Buffer, what string, most func(string) int) {
	fmt.Fprintf(b, "\nfunc call%sRows%s(t CacheType, rows int, x *attnArgs) {\n\tswitch t {\n", what, l.name)
	for _, t := range types {
		fmt.Fprintf(b, "\tcase Cache%s:\n\t\tswitch rows {\n", t)
		for rows := 1; rows <= most(t); rows++ {
			fmt.Fprintf(b, "\t\tcase %d:\n\t\t\t%s(x)\n", rows, l.rowName(what, t, rows))
		}
		b.WriteString("\t\t}\n")
	}
	b.WriteString("\t}\n}\n")
	for _, t := range types {
		for rows := 1; rows <= most(t); rows++ {
			fmt.Fprintf(b, "\n//go:noescape\nfunc %s(x *attnArgs)\n", l.rowName(what, t, rows))
		}
	}
}

func (l level) rowName(what, t string, rows int) string {
	return fmt.Sprintf("attn%sRows%s%d%s", what, t, rows, l.name)
}
