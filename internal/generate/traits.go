package generate

import "strings"

// traits are a set of what is true of a template: what it has a place for, and how it wants that.
type traits uint64

// They stand in the order of traitTable, which says what each means.
const (
	systemFirst traits = 1 << iota
	systemStays
	systemSeveral
	systemLater
	systemAlone
	usersInRow
	assistantsInRow
	userAfterTool
	assistantFirst
	assistantEmpty
	toolsDeclared
	toolsInSystem
	callsPrinted
	callsParallel
	callsWithText
	callsAfterText
	callsWithReasoning
	callsWithoutResult
	callsWithID
	reasoningByCalls
	answersEndReasoning
	toolResults
	takesInline
	takesInlineByCalls
	contentIsList
	contentIsNull
	reasoningIsPart
	argumentsAreText
	toolsAreEmptyList
	imagesPrinted
	imagesInSystem
	imagesInResults
)

// Trait is something that is true of a model's chat template or not, as trials with it have shown.
type Trait struct {
	Name, About string
	Has         bool
}

// traitTable has the names and meanings that people see.
var traitTable = [...][2]string{
	{"system_first", "prints a system message at the start"},
	{"system_stays", "keeps it in front however long the conversation gets"},
	{"system_several", "prints several system messages at the start"},
	{"system_later", "prints later system messages where they stand"},
	{"system_alone", "renders a system message and nothing else"},
	{"users_in_row", "prints two user turns in a row"},
	{"assistants_in_row", "prints two assistant turns in a row"},
	{"user_after_tool", "prints a user turn right after a tool's result"},
	{"assistant_first", "prints an assistant turn at the start"},
	{"assistant_empty", "renders an assistant turn without anything in it"},
	{"tools_declared", "prints declared tools"},
	{"tools_in_system", "does not, so that tools stand in the system text"},
	{"calls_printed", "prints calls with their arguments"},
	{"calls_parallel", "prints several calls of one turn"},
	{"calls_with_text", "prints text and a call of one turn"},
	{"calls_after_text", "does not, so that the text stands in front of the call in the family's form"},
	{"calls_with_reasoning", "renders reasoning, text and a call in one turn"},
	{"calls_without_result", "renders calls without results, and results without calls"},
	{"calls_with_id", "prints the ids of calls"},
	{"reasoning_by_calls", "prints reasoning beside calls, and none in a turn of text that they follow"},
	{"answers_end_reasoning", "leaves out the reasoning beside calls that an assistant turn without calls follows"},
	{"tool_results", "prints results of tools"},
	{"takes_inline", "takes reasoning in tags out of a text itself"},
	{"takes_inline_by_calls", "does so beside calls"},
	{"content_is_list", "wants content as a list of parts, not as a string"},
	{"content_is_null", "wants null, not an empty string, as the content of a turn with nothing but calls"},
	{"reasoning_is_part", "wants reasoning as a part of the content"},
	{"arguments_are_text", "wants the arguments of calls as JSON text, not as an object"},
	{"tools_are_empty_list", "wants an empty list, not null, where no tools are declared"},
	{"images_printed", "prints images of the user's, for a model that sees"},
	{"images_in_system", "prints images in a system message"},
	{"images_in_results", "prints images in results of tools"},
}

// Sets of traits that stricter forms do without.
const (
	// anyOrder are those of conversations other than a system message, then user and assistant one after the other.
	anyOrder = systemSeveral | systemLater | systemAlone | usersInRow | assistantsInRow | userAfterTool | assistantFirst | assistantEmpty |
		callsParallel | callsWithReasoning | callsWithoutResult
	anyCalls = callsPrinted | toolResults
)

// has tells whether all of some traits are in the set.
func (t traits) has(some traits) bool { return t&some == some }

// set puts some traits into the set, or takes them out.
func (t *traits) set(some traits, on bool) {
	if *t &^= some; on {
		*t |= some
	}
}

// String names the traits, as debug render and failing tests print them.
func (t traits) String() string {
	var names []string
	for i, row := range traitTable {
		if t.has(1 << i) {
			names = append(names, row[0])
		}
	}
	return strings.Join(names, " ")
}
