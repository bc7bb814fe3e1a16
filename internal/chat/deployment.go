package chat

import "context"

type deploymentKey struct{}

// WithDeployment says that a request came to an Azure deployment: its model is what that is called, a name that its owner chose
// freely and that may be no model's.
func WithDeployment(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, deploymentKey{}, name)
}

// Deployment is the name that WithDeployment gave ctx.
func Deployment(ctx context.Context) (name string, ok bool) {
	name, ok = ctx.Value(deploymentKey{}).(string)
	return name, ok
}
