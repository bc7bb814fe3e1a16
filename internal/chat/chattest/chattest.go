// Package chattest makes what tests of several rooms ask for. Only tests import it.
package chattest

import (
	"encoding/json"
	"fmt"
	"strings"

	"hearth/internal/chat"
)

// AgentTools are n tools as agents with many servers of tools declare them: nested objects, enums, values that may be null,
// definitions that refer to each other, patterns, formats and long descriptions, some 2 KB each. No bound may be met by them.
func AgentTools(n int) []chat.Tool {
	tools := make([]chat.Tool, n)
	for i := range tools {
		k := toolKinds[i%len(toolKinds)]
		tools[i] = chat.Tool{
			Name:        fmt.Sprintf("mcp__%s__%s_%d", k.server, k.name, i/len(toolKinds)),
			Description: strings.Repeat(k.about+" ", 1+400/len(k.about)) + "Returns an error with a reason where the caller may not do this.",
			Parameters:  json.RawMessage(strings.Join(strings.Fields(strings.NewReplacer("ZONES", zones, "LONG", long).Replace(k.schema)), " ")),
		}
	}
	return tools
}

const long = "What it is is told by the documentation of the service; leave it out for the default, which fits nearly always. " +
	"Names are matched without regard to case, and an empty value is as good as none. Never make one up: ask for it with the tool that lists them first."

// zones are more values than people count.
var zones = func() string {
	var names []string
	for _, area := range []string{"Africa", "America", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"} {
		for i := range 50 {
			names = append(names, fmt.Sprintf(`"%s/City_%d"`, area, i))
		}
	}
	return strings.Join(names, ",")
}()

var toolKinds = []struct{ server, name, about, schema string }{
	{"filesystem", "edit_file", "Replaces exact strings in a file, which must have been read before; the old text must be unique unless all of it is to be replaced.", `{
		"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "additionalProperties": false, "required": ["path", "edits"],
		"properties": {
			"path": {"type": "string", "minLength": 1, "description": "Absolute path of the file. LONG"},
			"edits": {"type": "array", "minItems": 1, "items": {"type": "object", "additionalProperties": false, "required": ["oldText", "newText"], "properties": {
				"oldText": {"type": "string", "description": "Text to search for. LONG"}, "newText": {"type": "string", "description": "Text that stands there afterwards. LONG"},
				"replaceAll": {"type": "boolean", "default": false}}}},
			"dryRun": {"type": "boolean", "default": false, "description": "Preview as a diff. LONG"},
			"encoding": {"enum": ["utf-8", "utf-16le", "latin1", null], "default": "utf-8"}}}`},
	{"github", "create_pull_request", "Opens a pull request from a branch of the repository or of a fork of it, and asks people and teams for a review.", `{
		"type": "object", "required": ["owner", "repo", "title", "head", "base"], "properties": {
			"owner": {"type": "string", "pattern": "^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$", "description": "LONG"}, "repo": {"type": "string", "pattern": "^[\\w.-]{1,100}$", "description": "LONG"},
			"title": {"type": "string", "maxLength": 256}, "head": {"type": "string"}, "base": {"type": "string"}, "body": {"type": ["string", "null"], "description": "LONG"},
			"draft": {"type": "boolean"}, "maintainer_can_modify": {"type": "boolean"},
			"labels": {"type": "array", "items": {"type": "string"}, "uniqueItems": true, "maxItems": 100},
			"reviewers": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": null, "description": "LONG"},
			"milestone": {"oneOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^v\\d+\\.\\d+(\\.\\d+)?$"}], "description": "LONG"},
			"assignees": {"type": "array", "items": {"type": "string"}, "description": "LONG"}}}`},
	{"notion", "query_database", "Finds the pages of a database that a filter lets through, in the order that is asked for, a hundred at a time.", `{
		"type": "object", "required": ["database_id"], "additionalProperties": false,
		"$defs": {
			"Text": {"type": "object", "properties": {"equals": {"type": "string"}, "does_not_equal": {"type": "string"}, "contains": {"type": "string"}, "is_empty": {"const": true}, "is_not_empty": {"const": true}}},
			"Number": {"type": "object", "properties": {"equals": {"type": "number"}, "greater_than": {"type": "number"}, "less_than": {"type": "number"}, "is_empty": {"const": true}}},
			"Date": {"type": "object", "properties": {"before": {"type": "string", "format": "date-time"}, "after": {"type": "string", "format": "date-time"}, "past_week": {"type": "object"}, "on_or_after": {"type": "string", "format": "date"}}},
			"Property": {"type": "object", "required": ["property"], "properties": {"property": {"type": "string", "description": "LONG"},
				"rich_text": {"$ref": "#/$defs/Text"}, "title": {"$ref": "#/$defs/Text"}, "number": {"$ref": "#/$defs/Number"}, "date": {"$ref": "#/$defs/Date"}, "checkbox": {"type": "object", "properties": {"equals": {"type": "boolean"}}}}},
			"Filter": {"anyOf": [{"$ref": "#/$defs/Property"},
				{"type": "object", "required": ["and"], "properties": {"and": {"type": "array", "items": {"$ref": "#/$defs/Filter"}}}},
				{"type": "object", "required": ["or"], "properties": {"or": {"type": "array", "items": {"$ref": "#/$defs/Filter"}}}}]}},
		"properties": {
			"database_id": {"type": "string", "format": "uuid"}, "filter": {"$ref": "#/$defs/Filter"},
			"sorts": {"type": "array", "items": {"oneOf": [
				{"type": "object", "required": ["property", "direction"], "properties": {"property": {"type": "string"}, "direction": {"enum": ["ascending", "descending"]}}},
				{"type": "object", "required": ["timestamp", "direction"], "properties": {"timestamp": {"enum": ["created_time", "last_edited_time"]}, "direction": {"enum": ["ascending", "descending"]}}}]}},
			"start_cursor": {"type": "string"}, "page_size": {"type": "integer", "minimum": 1, "maximum": 100, "default": 100}}}`},
	{"calendar", "create_event", "Puts an event into a calendar, with guests, reminders and a rule by which it comes again.", `{
		"type": "object", "required": ["summary", "start", "end"],
		"definitions": {"Time": {"type": "object", "properties": {"dateTime": {"type": "string", "format": "date-time"}, "date": {"type": "string", "pattern": "^\\d{4}-\\d{2}-\\d{2}$"}, "timeZone": {"type": "string", "enum": [ZONES]}}}},
		"properties": {
			"calendarId": {"type": "string", "default": "primary"}, "summary": {"type": "string"}, "description": {"type": "string"}, "location": {"type": "string"},
			"start": {"$ref": "#/definitions/Time"}, "end": {"$ref": "#/definitions/Time"},
			"attendees": {"type": "array", "maxItems": 200, "items": {"type": "object", "required": ["email"], "properties": {"email": {"type": "string", "format": "email"}, "optional": {"type": "boolean"}, "displayName": {"anyOf": [{"type": "string"}, {"type": "null"}]}}}},
			"recurrence": {"type": "array", "items": {"type": "string", "pattern": "^(RRULE|EXRULE|RDATE|EXDATE)[:;].+$"}},
			"reminders": {"type": "object", "properties": {"useDefault": {"type": "boolean"}, "overrides": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"method": {"enum": ["email", "popup"]}, "minutes": {"type": "integer", "minimum": 0, "maximum": 40320}}}}}}}}`},
	{"postgres", "query", "Runs a statement with parameters and gives the rows, or how the planner would go about it.", `{
		"type": "object", "required": ["sql"], "properties": {
			"sql": {"type": "string", "description": "LONG"},
			"params": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}, {"type": "array", "items": {}}, {"type": "object", "additionalProperties": true}]}, "description": "LONG"},
			"timeout_ms": {"type": "integer", "exclusiveMinimum": 0, "maximum": 600000}, "explain": {"enum": [false, "plain", "analyze", "buffers"], "description": "LONG"},
			"types": {"type": "object", "additionalProperties": {"type": "string", "enum": ["int4", "int8", "text", "jsonb", "timestamptz", "uuid", "numeric"]}, "description": "LONG"},
			"database": {"type": "string", "description": "LONG"}, "schema": {"type": "string", "description": "LONG"}, "read_only": {"type": "boolean", "default": true, "description": "LONG"}}}`},
	{"browser", "perform_actions", "Does what a person would in a page of the browser, one action after the other, and looks at the page at last.", `{
		"type": "object", "required": ["actions"], "properties": {
			"tabId": {"type": "integer", "description": "LONG"},
			"actions": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"oneOf": [
				{"type": "object", "required": ["type", "url"], "properties": {"type": {"const": "navigate"}, "url": {"type": "string", "format": "uri"}, "waitUntil": {"enum": ["load", "domcontentloaded", "networkidle"]}}},
				{"type": "object", "required": ["type", "selector"], "properties": {"type": {"const": "click"}, "selector": {"type": "string"}, "button": {"enum": ["left", "right", "middle"]}, "modifiers": {"type": "array", "items": {"enum": ["Alt", "Control", "Meta", "Shift"]}}}},
				{"type": "object", "required": ["type", "selector", "text"], "properties": {"type": {"const": "type"}, "selector": {"type": "string"}, "text": {"type": "string"}, "submit": {"type": "boolean"}, "slowly": {"type": "boolean"}}},
				{"type": "object", "required": ["type", "key"], "properties": {"type": {"const": "press"}, "key": {"type": "string", "pattern": "^(?:[A-Za-z0-9]|F\\d{1,2}|Arrow(?:Up|Down|Left|Right)|Enter|Escape|Tab)$"}}},
				{"type": "object", "required": ["type"], "properties": {"type": {"const": "screenshot"}, "fullPage": {"type": "boolean"}, "quality": {"type": "integer", "minimum": 0, "maximum": 100}}},
				{"type": "object", "required": ["type", "x", "y"], "properties": {"type": {"const": "scroll"}, "x": {"type": "number"}, "y": {"type": "number"}}}]}},
			"viewport": {"type": "object", "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}, "deviceScaleFactor": {"type": "number"}}}, "note": {"type": "string", "description": "LONG"}}}`},
	{"kubernetes", "apply", "Applies a manifest to a cluster as a server-side apply and says what changed.", `{
		"type": "object", "required": ["kind", "metadata"], "properties": {
			"apiVersion": {"type": "string"}, "kind": {"enum": ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Service", "Ingress", "ConfigMap", "Secret", "PersistentVolumeClaim"]},
			"metadata": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}, "namespace": {"type": "string"},
				"labels": {"type": "object", "additionalProperties": {"type": "string"}}, "annotations": {"type": "object", "additionalProperties": {"type": "string"}}}},
			"spec": {"type": "object", "properties": {"replicas": {"type": "integer", "minimum": 0}, "selector": {"type": "object", "properties": {"matchLabels": {"type": "object", "additionalProperties": {"type": "string"}}}},
				"template": {"type": "object", "properties": {"spec": {"type": "object", "properties": {"containers": {"type": "array", "items": {"type": "object", "required": ["name", "image"], "properties": {
					"name": {"type": "string"}, "image": {"type": "string"}, "args": {"type": "array", "items": {"type": "string"}},
					"env": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "value": {"type": "string"}, "valueFrom": {"type": "object", "properties": {"secretKeyRef": {"type": "object", "properties": {"name": {"type": "string"}, "key": {"type": "string"}}}}}}}},
					"resources": {"type": "object", "properties": {"limits": {"type": "object", "properties": {"cpu": {"type": ["string", "number"]}, "memory": {"type": "string", "pattern": "^\\d+(\\.\\d+)?(Ki|Mi|Gi|Ti)?$"}}}}}}}}}}}}}}, "dryRun": {"type": "boolean", "description": "LONG"}}}`},
	{"jira", "search_issues", "Searches issues by a query of the service's own language or by fields, and gives those that were asked for.", `{
		"$defs": {"Field": {"type": "string", "enum": ["summary", "status", "assignee", "reporter", "priority", "labels", "created", "updated", "duedate", "resolution", "components", "fixVersions", "description", "comment", "subtasks", "parent", "issuelinks"]},
			"Range": {"type": "object", "properties": {"from": {"type": ["string", "null"], "format": "date"}, "to": {"type": ["string", "null"], "format": "date"}}}},
		"type": "object", "properties": {
			"jql": {"anyOf": [{"type": "string", "maxLength": 4000}, {"type": "null"}], "default": null, "title": "Jql", "description": "LONG"},
			"fields": {"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/Field"}}, {"type": "null"}], "default": null, "title": "Fields", "description": "LONG"},
			"created": {"anyOf": [{"$ref": "#/$defs/Range"}, {"type": "null"}], "default": null, "description": "LONG"}, "updated": {"allOf": [{"$ref": "#/$defs/Range"}], "description": "LONG"},
			"max_results": {"type": "integer", "minimum": 1, "maximum": 100, "default": 50, "title": "Max Results"}, "start_at": {"type": "integer", "minimum": 0, "default": 0, "description": "LONG"},
			"expand": {"type": "array", "items": {"enum": ["changelog", "renderedFields", "names", "schema", "transitions", "operations", "editmeta"]}}}}`},
	{"documents", "insert_blocks", "Inserts blocks of text, lists and tables into a document; blocks may hold blocks.", `{
		"type": "object", "required": ["document", "blocks"],
		"$defs": {
			"Span": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}, "bold": {"type": "boolean"}, "italic": {"type": "boolean"}, "link": {"anyOf": [{"type": "string", "format": "uri"}, {"type": "null"}]}, "colour": {"enum": ["default", "gray", "brown", "orange", "yellow", "green", "blue", "purple", "pink", "red"]}}},
			"Block": {"anyOf": [
				{"type": "object", "required": ["type", "spans"], "properties": {"type": {"enum": ["paragraph", "quote", "callout"]}, "spans": {"type": "array", "items": {"$ref": "#/$defs/Span"}}, "children": {"type": "array", "items": {"$ref": "#/$defs/Block"}}}},
				{"type": "object", "required": ["type", "level", "spans"], "properties": {"type": {"const": "heading"}, "level": {"enum": [1, 2, 3]}, "spans": {"type": "array", "items": {"$ref": "#/$defs/Span"}}}},
				{"type": "object", "required": ["type", "items"], "properties": {"type": {"const": "list"}, "ordered": {"type": "boolean"}, "items": {"type": "array", "items": {"$ref": "#/$defs/Block"}}}},
				{"type": "object", "required": ["type", "rows"], "properties": {"type": {"const": "table"}, "rows": {"type": "array", "items": {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/Span"}}}}}},
				{"type": "object", "required": ["type", "code"], "properties": {"type": {"const": "code"}, "language": {"type": "string"}, "code": {"type": "string"}}}]}},
		"properties": {"document": {"type": "string", "pattern": "^doc_[0-9a-f]{32}$"}, "after": {"type": ["string", "null"]}, "blocks": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Block"}}}}`},
	{"slack", "post_message", "Posts a message to a channel or a thread of it, plain or made of blocks.", `{
		"type": "object", "required": ["channel"], "properties": {
			"channel": {"type": "string", "pattern": "^[CDG][A-Z0-9]{8,}$", "description": "LONG"}, "text": {"type": "string", "maxLength": 40000, "description": "LONG"}, "thread_ts": {"type": "string", "pattern": "^\\d{10}\\.\\d{6}$", "description": "LONG"},
			"reply_broadcast": {"type": "boolean", "description": "LONG"}, "unfurl_links": {"type": "boolean", "description": "LONG"}, "mrkdwn": {"type": "boolean"},
			"blocks": {"type": "array", "maxItems": 50, "items": {"type": "object", "required": ["type"], "properties": {"type": {"type": "string", "enum": ["section", "divider", "header", "context", "actions", "image"]}, "text": {"type": "object", "properties": {"type": {"enum": ["plain_text", "mrkdwn"]}, "text": {"type": "string"}}}}, "additionalProperties": true}},
			"metadata": {"type": "object", "properties": {"event_type": {"type": "string"}, "event_payload": {"type": "object"}}}, "icon": {"not": {"type": "integer"}, "description": "LONG"}}}`},
	{"metrics", "query_range", "Evaluates an expression over a range of time and gives the series as points.", `{
		"type": "object", "required": ["query", "start", "end"], "if": {"properties": {"format": {"const": "csv"}}}, "then": {"properties": {"delimiter": {"type": "string"}}}, "properties": {
			"query": {"type": "string", "description": "LONG"}, "start": {"anyOf": [{"type": "number"}, {"type": "string", "format": "date-time"}], "description": "LONG"}, "end": {"anyOf": [{"type": "number"}, {"type": "string", "format": "date-time"}], "description": "LONG"},
			"step": {"type": "string", "pattern": "^([0-9]+(ms|s|m|h|d|w|y))+$", "description": "LONG"}, "timeout": {"type": "string"}, "format": {"enum": ["json", "csv", "table"]}, "delimiter": {"type": "string", "maxLength": 1},
			"groupBy": {"type": "array", "items": {"type": "string"}}, "thresholds": {"type": "array", "prefixItems": [{"type": "number"}, {"type": "number"}], "items": false, "description": "LONG"},
			"variables": {"type": "object", "patternProperties": {"^[a-z_][a-z0-9_]*$": {"type": ["string", "number", "boolean"]}}, "propertyNames": {"maxLength": 64}, "description": "LONG"}}}`},
	{"shell", "run", "Runs a command in a shell that stays open between calls and gives what it printed.", `{
		"type": "object", "required": ["command"], "additionalProperties": false, "properties": {
			"command": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}], "description": "LONG LONG"}, "workdir": {"type": "string", "description": "LONG LONG"},
			"timeout": {"type": "number", "minimum": 0, "maximum": 600000, "description": "LONG"}, "run_in_background": {"type": "boolean", "description": "LONG"}, "env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "LONG"},
			"sandbox_permissions": {"type": "string", "enum": ["use_default", "require_escalated", "with_additional_permissions"], "description": "LONG"}, "justification": {"type": "string", "description": "LONG"}, "prefix_rule": {"type": "array", "items": {"type": "string"}}}}`},
}
