package chat

import (
	"context"
	"time"
)

type keepAliveKey struct{}

// WithKeepAlive says how long a model that a request has opened stays loaded after it, if nobody else uses it: 0 not at all,
// below 0 until its memory is needed. What the last request said counts. With nil ctx says nothing.
func WithKeepAlive(ctx context.Context, d *time.Duration) context.Context {
	if d == nil {
		return ctx
	}
	return context.WithValue(ctx, keepAliveKey{}, *d)
}

// KeepAlive is what WithKeepAlive gave ctx.
func KeepAlive(ctx context.Context) (d time.Duration, told bool) {
	d, told = ctx.Value(keepAliveKey{}).(time.Duration)
	return d, told
}
