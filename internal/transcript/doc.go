// Package transcript remembers what was said to a model and what it answered: as text, and as the ids that ran. The next
// turn of a conversation gets those ids again, so that the prefix cache finds them and only what is new is encoded.
//
// It knows text and ids alone. How a template writes a message and how a model writes a call is told to it with each Draft.
package transcript
