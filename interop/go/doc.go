// Package interop holds the official Go SDKs against hearth: the same calls through anthropic-sdk-go v1 and v2 and
// openai-go v3 with its Azure client, to a server with scripted replies and to a running hearth. It is only tests.
package interop
