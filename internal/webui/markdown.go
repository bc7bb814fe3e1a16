package webui

import (
	"bytes"
	"html"
	"regexp"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// markdown is CommonMark with the extensions of GitHub. HTML in it is text, and so is a picture, of which the address becomes a
// link: nothing is fetched by being shown.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Linkify, extension.Strikethrough, extension.TaskList,
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute))), goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(plainNodes{}, 100))))

// plainNodes renders what must not be rendered.
type plainNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (plainNodes) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			for _, s := range n.(*ast.RawHTML).Segments.Sliced(0, n.(*ast.RawHTML).Segments.Len()) {
				_, _ = w.Write(util.EscapeHTML(s.Value(source)))
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		b := n.(*ast.HTMLBlock)
		if entering {
			_, _ = w.WriteString("<pre>")
			for i := range b.Lines().Len() {
				s := b.Lines().At(i)
				_, _ = w.Write(util.EscapeHTML(s.Value(source)))
			}
			if b.HasClosure() {
				_, _ = w.Write(util.EscapeHTML(b.ClosureLine.Value(source)))
			}
			_, _ = w.WriteString("</pre>\n")
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindImage, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(`<a href="`)
			_, _ = w.Write(util.EscapeHTML(util.URLEscape(n.(*ast.Image).Destination, true)))
			_, _ = w.WriteString(`">`)
		} else {
			_, _ = w.WriteString("</a>")
		}
		return ast.WalkContinue, nil
	})
}

// allowed is what of the result may stay, whatever made it.
var allowed = func() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements("p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "ul", "ol", "li", "pre", "code", "em", "strong", "del", "table", "thead", "tbody",
		"tr", "th", "td")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^\d{1,9}$`)).OnElements("ol")
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[\w+#.-]{1,32}$`)).OnElements("code")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td")
	p.AllowAttrs("type").Matching(regexp.MustCompile(`^checkbox$`)).OnElements("input")
	p.AllowAttrs("checked", "disabled").Matching(regexp.MustCompile(`^$`)).OnElements("input")
	p.AllowAttrs("href").OnElements("a")
	p.AllowURLSchemes("http", "https", "mailto")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}()

// Bounds of a text that is rendered. What goldmark does for a text grows with the square of the marks in it: nested quotes and
// lists, emphasis and brackets that match nothing.
const (
	maxText  = 64 << 10 // bytes
	maxMarks = 2000
)

// Markdown is a text of Markdown as HTML of a few harmless elements. One beyond the bounds is a paragraph as it is.
func Markdown(text string) string {
	var b bytes.Buffer
	if len(text) > maxText || marks(text) > maxMarks || markdown.Convert([]byte(text), &b) != nil {
		return "<p>" + html.EscapeString(text) + "</p>"
	}
	return allowed.SanitizeReader(&b).String()
}

// marks counts what may open or close something.
func marks(text string) (n int) {
	for i := range len(text) {
		switch c := text[i]; {
		case strings.IndexByte("*_~[]>", c) >= 0:
			n++
		case strings.IndexByte("-+.)", c) >= 0 && i+1 < len(text) && (text[i+1] == ' ' || text[i+1] == '\t'):
			if c == '-' || c == '+' || i > 0 && text[i-1] >= '0' && text[i-1] <= '9' {
				n++
			}
		}
	}
	return n
}
