package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/aiopslab/aiopslab/cloud"
	"github.com/aiopslab/aiopslab/cloud/embedded/node"
)

var _ cloud.Keeper = (*Cloud)(nil)

// Keep implements cloud.Keeper.
func (c *Cloud) Keep(ctx context.Context, at cloud.Command) (cloud.Kept, error) {
	k, err := c.fleet.Keep(ctx, at.Namespace, at.Pod, at.Container, at.Args)
	if err != nil {
		return nil, err
	}
	return &kept{k, at.Namespace + "/" + at.Pod + "/" + k.Container}, nil
}

// kept is a container as it was.
type kept struct {
	*node.Kept
	name string
}

// Name implements cloud.Kept.
func (k *kept) Name() string { return k.name }

// ID implements cloud.Kept.
func (k *kept) ID() string { return k.PodUID() + "/" + k.Container }

// Size implements cloud.Kept.
func (k *kept) Size() int64 { return k.Bytes }

// PutBack implements cloud.Kept.
func (k *kept) PutBack(ctx context.Context) (done string, err error) {
	if done, err = k.Kept.PutBack(ctx); err != nil {
		return "", err
	}
	return fmt.Sprintf("container %s: %s. They are of %s: what was written there since is gone", k.Container, done,
		k.At.UTC().Format(time.TimeOnly)), nil
}
