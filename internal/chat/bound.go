package chat

// Bound names a limit on what a request may cost. An Error says which one it met, logs and /v1/status count by it, and
// docs/security.md lists all of them with what they bound and how they are set.
type Bound string

const (
	BoundBody Bound = "body" // bytes of one request's body

	BoundTemplate Bound = "template" // steps, depth and bytes of rendering one prompt
	BoundSchema   Bound = "schema"   // steps of comparing a reply with the schema of its response_format
)

// Boundf makes an Invalid error about the field at param that met bound b.
func Boundf(b Bound, param, format string, args ...any) *Error {
	e := Invalidf(param, format, args...)
	e.Bound = b
	return e
}
