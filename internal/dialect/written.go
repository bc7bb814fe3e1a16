package dialect

import "strconv"

// hermesCalls is the form that models know best, whatever their own.
var hermesCalls = eachCall("", "\n", "", "<tool_call>\n{{ c | tojson }}\n</tool_call>")

// pythonCall is a call in Python.
const pythonCall = `{{ c.name }}({% for k, v in c.arguments.items() %}{{ "" if loop.first else ", " }}` +
	`{{ k }}={{ v | tojson if v is string else v }}{% endfor %})`

// eachCall is a template of calls: what stands around and between them, and what one of them looks like.
func eachCall(before, between, after, one string) string {
	return quoted(before) + "{% for c in calls %}{% if not loop.first %}" + quoted(between) + "{% endif %}" + one + "{% endfor %}" + quoted(after)
}

// xmlCalls is of calls with their parameters one by one, texts as they are and other values as JSON.
func xmlCalls(before, after, open, param, paramClose, end string) string {
	return eachCall(before, "\n", after, open+"{% for k, v in c.arguments.items() %}"+param+"{{ v if v is string else v | tojson }}"+
		quoted(paramClose)+"{% endfor %}"+end)
}

// bareCalls is of calls with keys without quotes and texts in a mark of their own.
func bareCalls(open, end, mark string) string {
	return `{% macro m(v) %}{% if v is string %}` + mark + `{{ v }}` + mark +
		`{% elif v is mapping %}{{ "{" }}{% for k, x in v.items() %}{{ "" if loop.first else "," }}{{ k }}:{{ m(x) }}{% endfor %}{{ "}" }}` +
		`{% elif v is iterable %}[{% for x in v %}{{ "" if loop.first else "," }}{{ m(x) }}{% endfor %}]{% else %}{{ v | tojson }}{% endif %}{% endmacro %}` +
		eachCall("", "", "", open+"call:{{ c.name }}{{ m(c.arguments) }}"+end)
}

// quoted is an expression that prints a text: at the ends of blocks a template drops newlines that stand there as they are.
func quoted(text string) string { return "{{ " + strconv.Quote(text) + " }}" }

// forceJSON is the start of a call as a JSON object with the given keys.
func forceJSON(open, nameKey, argsKey string) func(string) string {
	return func(tool string) string {
		if tool == "" {
			return open + `{"` + nameKey + `": "`
		}
		return open + `{"` + nameKey + `": ` + JSONString(tool) + `, "` + argsKey + `": `
	}
}

// forceNamed is the start of a call with what stands around the name of its tool.
func forceNamed(before, after string) func(string) string {
	return func(tool string) string {
		if tool != "" {
			tool += after
		}
		return before + tool
	}
}
