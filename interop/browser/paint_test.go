package browser

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

var (
	paints = flag.Int("paint", 0, "how often TestPaint opens each page; without it nothing is measured")
	beside = flag.String("beside", "", "another hearth binary, whose page TestPaint opens in turns with the others")
)

// moments are what a page says of its own beginning, in milliseconds from the start of its navigation.
const moments = `((n, p) => p && n.loadEventEnd ? [n.responseStart, n.responseEnd, n.domInteractive, p.startTime, n.domContentLoadedEventEnd] : [])
	(performance.getEntriesByType('navigation')[0], performance.getEntriesByName('first-contentful-paint')[0])`

// momentNames are those of moments.
var momentNames = []string{"first byte", "last byte", "parsed", "drawn", "modules have run"}

// TestPaint measures how soon the page is drawn, in turns with a page of one line, which is as soon as this browser draws
// anything here: in tabs that are made for it, whose process has to start, and in such as have shown nothing yet.
func TestPaint(t *testing.T) {
	if *binary == "" || *paints == 0 {
		t.Skip("run by hand, with -paint")
	}
	line := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>line</title><p>A line.<script>requestAnimationFrame(() => setTimeout(() => { document.title = 'line · drawn' }))</script>")
	}))
	defer line.Close()
	pages := [][2]string{{"a line", line.URL}, {"hearth", scripted(t, `{"raw": "Hello."}`).URL}}
	if *beside != "" {
		mine := *binary
		*binary = *beside
		pages = append(pages, [2]string{*beside, scripted(t, `{"raw": "Hello."}`).URL})
		*binary = mine
	}
	browser := start(t)
	for _, way := range []struct {
		name string
		open func(t *testing.T, browser context.Context, url string) *tab
	}{{"new tab", newTab}, {"empty tab", emptyTab}} {
		way.open(t, browser, line.URL) // once, so that the browser is warm
		took := map[string][][]float64{}
		for range *paints {
			for _, p := range pages {
				t.Run(way.name, func(t *testing.T) { // which closes the tab at its end
					b := way.open(t, browser, p[1])
					b.wait("the first paint", moments+".length")
					took[p[0]] = append(took[p[0]], value[[]float64](b, moments))
				})
			}
		}
		for _, p := range pages {
			said := way.name + ", " + p[0] + ": ms, median (range of " + fmt.Sprint(*paints) + "):"
			for i, name := range momentNames {
				var all []float64
				for _, x := range took[p[0]] {
					all = append(all, x[i])
				}
				slices.Sort(all)
				said += fmt.Sprintf(" %s %.0f (%.0f to %.0f)", name, all[len(all)/2], all[0], all[len(all)-1])
			}
			t.Log(said)
		}
	}
}

// newTab opens a page in a tab that is made for it, in a profile of its own. The tab is let alone until its title says that the
// page is there.
func newTab(t *testing.T, browser context.Context, url string) *tab {
	t.Helper()
	profile, err := chromedp.CallBrowser(browser, target.CreateBrowserContext, target.CreateBrowserContextParams{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = chromedp.CallBrowser(browser, target.DisposeBrowserContext, target.DisposeBrowserContextParams(profile))
	})
	window := true
	made, err := chromedp.CallBrowser(browser, target.CreateTarget, target.CreateTargetParams{URL: url, BrowserContextID: profile.BrowserContextID, NewWindow: &window, Width: 1280, Height: 800})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		info, err := chromedp.CallBrowser(browser, target.GetTargetInfo, target.GetTargetInfoParams(made))
		if err != nil || time.Now().After(end) {
			t.Fatalf("the page did not come: %v", err)
		}
		if strings.Contains(info.TargetInfo.Title, " · ") {
			break
		}
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithTargetID(made.TargetID))
	t.Cleanup(cancel)
	return &tab{t: t, ctx: ctx}
}

// emptyTab opens a page in a tab that is there, and has shown nothing.
func emptyTab(t *testing.T, browser context.Context, url string) *tab {
	t.Helper()
	b := open(t, browser)
	b.wait("nothing", "document.readyState === 'complete'")
	b.show(url)
	return b
}
