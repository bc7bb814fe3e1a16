package generate

import (
	"context"
	"sync/atomic"

	"hearth/internal/chat"
	"hearth/internal/engine"
	"hearth/internal/vision"
)

// sighted is a Sight at work: with what it remembers of the files that it has seen.
type sighted struct {
	*Sight
	known   *digests
	decoded atomic.Int64 // files, since start
}

// prepared is a picture for the engine: its digest, and its pixels until the engine has taken them, if they were made for this
// request. Else they are made when the engine asks for them.
type prepared struct {
	digest [32]byte

	by    *sighted
	named seenFile
	file  []byte
	with  *vision.Processor
	media chat.Media // for errors
	turn  chan struct{}
	tiles int
	held  *vision.Picture // in turn, like left
	left  int             // of its tiles that were not taken
}

// prepare gives the digest of a picture for a prompt under a salt. It is decoded unless it was before; a plain prompt neither
// learns from others nor leaves anything for them.
func (s *sighted) prepare(ctx context.Context, pic *picture, salt [16]byte, plain bool) (*prepared, error) {
	v := &prepared{by: s, named: seenFile{salt, pic.recipe()}, file: pic.file, with: pic.with, media: *pic.media,
		turn: make(chan struct{}, 1), tiles: len(pic.plan.Tiles)}
	v.media.Base64, v.media.File = nil, nil
	var ok bool
	if !plain {
		if v.digest, ok = s.known.find(v.named); ok {
			return v, nil
		}
	}
	if err := v.decode(ctx); err != nil {
		return nil, err
	}
	if v.digest = v.held.Digest; !plain {
		s.known.add(v.named, v.digest)
	}
	return v, nil
}

func (v *prepared) decode(ctx context.Context) error {
	p, err := v.by.Gate.Picture(ctx, v.file, v.with)
	if err != nil {
		return err
	}
	v.by.decoded.Add(1)
	v.held, v.left = p, v.tiles
	return nil
}

// open gets the patches of a tile for the engine.
func (v *prepared) open(ctx context.Context, tile int) (engine.Patches, error) {
	select {
	case v.turn <- struct{}{}:
		defer func() { <-v.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if v.held == nil {
		if err := v.decode(ctx); err != nil {
			return nil, imageError(&v.media, err)
		}
	}
	p := v.held
	if p.Digest != v.digest { // of a file, or by another version
		v.by.known.remove(v.named)
		return nil, &chat.Error{Kind: chat.Internal, Param: v.media.Path, Msg: "the image is not what was kept of it: try again"}
	}
	if v.left--; v.left == 0 {
		v.held = nil
	}
	return func(from, to int) []float32 {
		patches := make([]float32, (to-from)*p.PatchLen())
		p.Patches(patches, tile, from, to-from)
		return patches
	}, nil
}
