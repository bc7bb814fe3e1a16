package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"hearth/internal/chat"
)

// Fetcher gets files of the web.
type Fetcher interface {
	// Fetch gets the file at a URL of http or https. hold is asked before memory is taken for that many bytes more; false: there
	// is none, and the error is ErrNoRoom. Others say what is wrong and what to do, in a text that follows "the image ".
	Fetch(ctx context.Context, url string, hold func(bytes int64) bool) ([]byte, error)
}

// mostFetched bounds the URLs of one request that are followed.
const mostFetched = 100

// errTogether says that a request has too much to fetch.
var errTogether = errors.New("is one of several that are larger together than a body of a request may be: send fewer or smaller ones")

// imagePart is an image of a request, where it stands.
type imagePart struct {
	*chat.Media
	inResult bool
}

// imagesOf lists the images of messages.
func imagesOf(messages []chat.Message) (all []imagePart) {
	var walk func(parts []chat.Part, inResult bool)
	walk = func(parts []chat.Part, inResult bool) {
		for i := range parts {
			switch p := &parts[i]; {
			case p.Kind == chat.PartToolResult && p.Result != nil:
				walk(p.Result.Parts, true)
			case p.Kind == chat.PartMedia && p.Media.Kind == chat.Image:
				all = append(all, imagePart{p.Media, inResult})
			}
		}
	}
	for i := range messages {
		walk(messages[i].Parts, false)
	}
	return all
}

// files are the bytes of a request's images, for as long as its prompt is made.
type files struct {
	all     []imagePart
	fetched *Body // the place of what was fetched among Bodies
}

// files sees to it that the images of a request are there, if the model sees: those of URLs are fetched where that is allowed.
// What does not come is refused, but in the result of a tool, where it stays what it is to a model that does not see. forget must
// be called.
func (o Options) files(ctx context.Context, m chat.Model, req *chat.Request) (*files, *chat.Error) {
	f := &files{all: imagesOf(req.Messages)}
	if !m.Sees {
		return f, nil
	}
	var urls []string
	at := map[string][]imagePart{}
	for _, img := range f.all {
		switch {
		case img.By == "":
		case img.By == chat.ByURL && o.Fetch != nil:
			if at[img.URL] == nil {
				urls = append(urls, img.URL)
			}
			at[img.URL] = append(at[img.URL], img)
		case img.inResult:
		case img.By == chat.ByURL:
			return f, chat.Invalidf(img.Path, "%s; a server that is started with --image-urls fetches it", img.Refusal)
		default:
			return f, chat.Invalidf(img.Path, "%s", img.Refusal)
		}
	}
	if len(urls) == 0 {
		return f, nil
	}
	if len(urls) > mostFetched {
		return f, chat.Boundf(chat.BoundImages, at[urls[mostFetched]][0].Path, "there are %d images to fetch: at most %d in one request", len(urls), mostFetched)
	}
	return f, o.fetch(ctx, f, urls, at)
}

// fetch gets what is at URLs for the images that are there.
func (o Options) fetch(ctx context.Context, f *files, urls []string, at map[string][]imagePart) *chat.Error {
	info := InfoFrom(ctx)
	info.BeginTimed() // a fetcher has a time limit
	defer info.EndTimed()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f.fetched = &Body{of: o.Bodies}
	var mu sync.Mutex
	var full *chat.Error
	hold := func(n int64) bool {
		mu.Lock()
		defer mu.Unlock()
		switch to := f.fetched.bytes + n; {
		case to > o.MaxBody:
			return false
		case !o.Bodies.grow(f.fetched.bytes, to):
			full = o.Bodies.full()
			cancel()
			return false
		default:
			f.fetched.bytes = to
			return true
		}
	}
	got, errs := make([][]byte, len(urls)), make([]error, len(urls))
	var wg sync.WaitGroup
	for i, url := range urls {
		wg.Go(func() {
			if got[i], errs[i] = o.Fetch.Fetch(ctx, url, hold); errors.Is(errs[i], ErrNoRoom) {
				errs[i] = errTogether
			}
			if errs[i] != nil && needed(at[url]) != nil {
				cancel() // the others are for nothing
			}
		})
	}
	wg.Wait()
	if full != nil {
		return full
	}
	var cut *chat.Error
	for i, url := range urls {
		img := needed(at[url])
		switch {
		case errs[i] == nil:
			for _, img := range at[url] {
				img.File, img.By, img.Bytes = got[i], "", len(got[i])
			}
		case img == nil:
		case errors.Is(errs[i], context.Canceled):
			cut = asError(ctx, errs[i])
		default:
			return &chat.Error{Kind: chat.Invalid, Param: img.Path, Code: chat.ImageCodes + "_fetch", Msg: fmt.Sprintf("the image %v", errs[i]), Err: errs[i]}
		}
	}
	return cut
}

// needed is an image whose absence is an error; nil: there is none.
func needed(all []imagePart) *imagePart {
	for i := range all {
		if !all[i].inResult {
			return &all[i]
		}
	}
	return nil
}

// ErrNoRoom is what a Fetcher gives where hold said no.
var ErrNoRoom = errors.New("no room for the file")

// forget lets go of the bytes: the prompt is made, and a reply may take long.
func (f *files) forget() {
	for _, img := range f.all {
		img.Base64, img.File = nil, nil
	}
	f.all = nil
	f.fetched.Close()
}
