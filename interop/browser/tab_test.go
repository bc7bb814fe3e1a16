package browser

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// start starts one browser for all the tabs of a test. Names under .example are this machine, and no connection leaves it.
func start(t *testing.T) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(*chromium), chromedp.UserDataDir(t.TempDir()), chromedp.DisableGPU,
		chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1"))
	if os.Getuid() == 0 { // as whom its sandbox refuses to run
		options = append(options, chromedp.NoSandbox)
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", *chromium, err)
	}
	return ctx
}

// tab is a page in a profile of its own. What it complains of is an error of the test, but for what expects says.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	said     []string
	expected []string
}

// open opens a tab. The servers that it is to show are there before it: so it is closed before they are, and asks nothing of one
// that is gone.
func open(t *testing.T, browser context.Context) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*limit)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			text := ev.ExceptionDetails.Text
			if e := ev.ExceptionDetails.Exception; e != nil {
				text += " " + e.Description
			}
			b.complain("exception: " + text)
		case *runtime.EventConsoleAPICalled:
			if ev.Type == runtime.ConsoleAPICalledTypeError || ev.Type == runtime.ConsoleAPICalledTypeWarning {
				b.complain(fmt.Sprintf("console: %v", ev.Args[0]))
			}
		case *cdplog.EventEntryAdded:
			if ev.Entry.Level == cdplog.EntryLevelError || ev.Entry.Level == cdplog.EntryLevelWarning {
				b.complain("log: " + ev.Entry.Text + " " + ev.Entry.URL)
			}
		case *cdppage.EventJavascriptDialogOpening:
			b.complain("dialog: " + ev.Message)
			go func() {
				_, _ = chromedp.Call(ctx, cdppage.HandleJavaScriptDialog, cdppage.HandleJavaScriptDialogParams{Accept: true})
			}()
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.complaints)
	return b
}

func (b *tab) complain(of string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = append(b.said, of)
}

// expects has a complaint with this text be none.
func (b *tab) expects(text string) { b.expected = append(b.expected, text) }

func (b *tab) complaints() {
	b.mu.Lock()
	defer b.mu.Unlock()
said:
	for _, s := range b.said {
		for _, e := range b.expected {
			if strings.Contains(s, e) {
				continue said
			}
		}
		b.t.Errorf("the browser complains: %s", s)
	}
	b.said = nil
}

func (b *tab) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatal(err)
	}
}

// text is what an expression of JavaScript gives, or its promise, as text.
func (b *tab) text(expression string) string {
	b.t.Helper()
	return value[string](b, "Promise.resolve("+expression+").then(String)")
}

// value is what an expression of JavaScript gives, or its promise.
func value[T any](b *tab, expression string) T {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return out
}

// wait waits until an expression is true, and says what it waited for when that takes too long.
func (b *tab) wait(what, expression string) {
	b.t.Helper()
	for end := time.Now().Add(limit); ; {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		switch {
		case err == nil && ok:
			return
		case time.Now().After(end) || b.ctx.Err() != nil:
			b.t.Fatalf("%s did not come (%v); the page:\n%s", what, err, b.text("document.body.innerText"))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// sees waits for a text in the page.
func (b *tab) sees(text string) {
	b.t.Helper()
	b.wait(text, "document.body.innerText.includes("+quote(text)+")")
}

// quote is a text in JavaScript.
func quote(s string) string {
	text, _ := json.Marshal(s) // a text always can
	return string(text)
}

// act waits for an element that an expression finds, and does something with it in the same task: what draws the page anew
// cannot come between.
func (b *tab) act(what, find, do string) {
	b.t.Helper()
	b.wait(what, "(e => e && ("+do+", true))("+find+")")
}

// click clicks on the first thing that is to be seen of a selector, once nothing covers it.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.act(selector, "[...document.querySelectorAll("+quote(selector)+")].find(e => e.checkVisibility() && (e.scrollIntoView({ block: 'nearest' }), "+
		"(r => e.contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)))(e.getBoundingClientRect())))", "e.click()")
}

// press clicks on a button by its name, as those find it who do not see it.
func (b *tab) press(name string) {
	b.t.Helper()
	b.act("the button "+name, "[...document.querySelectorAll('button, a, summary')].filter(b => b.checkVisibility() && !b.disabled && (b.getAttribute('aria-label') ?? b.innerText).trim() === "+quote(name)+").at(-1)", "e.click()")
}

// key presses a key where a selector leads.
func (b *tab) key(selector, key string) {
	b.t.Helper()
	b.act(selector, "document.querySelector("+quote(selector)+")", "e.dispatchEvent(new KeyboardEvent('keydown', { key: "+quote(key)+", bubbles: true, cancelable: true }))")
}

// show opens a page and waits until it is loaded.
func (b *tab) show(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
}

// size is that of the page in CSS pixels; dark is the system's theme.
func (b *tab) size(width, height int64, dark bool) {
	b.t.Helper()
	theme := map[bool]string{true: "dark", false: "light"}[dark]
	_, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 500})
	_, err2 := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err := errors.Join(err, err2); err != nil {
		b.t.Fatal(err)
	}
}

// fits fails where something is wider than the page.
func (b *tab) fits() {
	b.t.Helper()
	if wide := b.text(`[...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && e.getBoundingClientRect().right > innerWidth + 1 && !e.closest('pre, table, .scroll, .side'))` +
		`.map(e => e.tagName + '.' + e.className).slice(0, 5)`); wide != "" || b.text("document.documentElement.scrollWidth > innerWidth") == "true" {
		b.t.Errorf("wider than the page: %s", wide)
	}
}

// axe fails where axe-core finds something serious.
func (b *tab) axe(what string) {
	b.t.Helper()
	if *axe == "" {
		return
	}
	code, err := os.ReadFile(*axe)
	if err != nil {
		b.t.Fatal(err)
	}
	b.run(chromedp.Evaluate[chromedp.Void](string(code)))
	if found := b.text(`axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)).map(v => v.id + ': ' + v.help + ': ' + v.nodes.map(n => n.html.slice(0, 160) + ' ' + (n.any[0]?.message ?? '')).slice(0, 4).join(' | ')).join('\n'))`); found != "" {
		b.t.Errorf("%s: axe finds:\n%s", what, found)
	}
}
