package mlx

import (
	"fmt"
	"runtime"
	"sync"
)

// owner is the one thread that calls MLX, for the life of the process: MLX's streams, and the arrays that were not computed
// yet, belong to the thread that made them. Others hand it closures.
type owner struct {
	*lib
	jobs chan job
}

type job struct {
	run  func()
	done chan any // what it panicked with, or nil
}

// owners are the libraries this process has opened, by path and settings: an MLX library has state of its own for the
// whole process, and is never closed.
var owners = struct {
	sync.Mutex
	all map[string]*owner
}{all: map[string]*owner{}}

// open gives the owner of the library that c means, which it starts if need be.
func (c *Config) open() (*owner, error) {
	library, path, err := c.find()
	if err != nil {
		return nil, err
	}
	owners.Lock()
	defer owners.Unlock()
	key := fmt.Sprintf("%s\n%s\n%d %t %d/%d", path, c.Device, c.Limit, c.Compile, c.Rank, c.World)
	if o := owners.all[key]; o != nil {
		return o, nil
	}
	o := &owner{lib: &lib{Library: library, path: path, device: c.Device, limit: c.Limit, compiles: c.Compile, rank: c.Rank, world: c.World}, jobs: make(chan job)}
	go o.work()
	o.wait(func() {
		if err = o.link(); err == nil {
			err = o.selfTest()
		}
	})
	if err != nil {
		close(o.jobs)
		return nil, err
	}
	owners.all[key] = o
	return o, nil
}

// work runs closures one after the other, each with an end to the arrays it made.
func (o *owner) work() {
	runtime.LockOSThread()
	for j := range o.jobs {
		j.done <- o.run(j.run)
	}
}

func (o *owner) run(f func()) (failed any) {
	defer func() {
		if r := recover(); r != nil {
			failed = fmt.Sprint(r)
		}
		o.release()
	}()
	f()
	return nil
}

// wait hands over a closure and waits for it. A panic of its is raised here.
func (o *owner) wait(f func()) {
	done := make(chan any, 1)
	o.jobs <- job{f, done}
	if p := <-done; p != nil {
		panic(p)
	}
}
