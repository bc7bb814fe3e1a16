package webui

import (
	"regexp"
	"strings"
	"testing"
)

func TestMarkdown(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", ""}, {"a *b* **c** ~~d~~ `e`", "<p>a <em>b</em> <strong>c</strong> <del>d</del> <code>e</code></p>\n"},
		{"# a", "<h1>a</h1>\n"}, {"- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>\n"}, {"3. a", "<ol start=\"3\">\n<li>a</li>\n</ol>\n"},
		{"- [x] a", "<ul>\n<li><input checked=\"\" disabled=\"\" type=\"checkbox\"> a</li>\n</ul>\n"},
		{"```go\na < b\n```", "<pre><code class=\"language-go\">a &lt; b\n</code></pre>\n"},
		{"```<script>\na\n```", "<pre><code>a\n</code></pre>\n"},
		{"|a|\n|-:|\n|b|", "<table>\n<thead>\n<tr>\n<th align=\"right\">a</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"right\">b</td>\n</tr>\n</tbody>\n</table>\n"},
		{"[a](https://b.c/d)", "<p><a href=\"https://b.c/d\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">a</a></p>\n"},
		{"![a](https://b.c/d.png)", "<p><a href=\"https://b.c/d.png\" rel=\"nofollow noreferrer noopener\" target=\"_blank\">a</a></p>\n"},
		{"[a](javascript:b)", "<p>a</p>\n"}, {"![a](javascript:b)", "<p>a</p>\n"}, {"[a](/b)", "<p>a</p>\n"}, {"[a](data:text/html,b)", "<p>a</p>\n"},
		{"a <b onclick=c>d</b>", "<p>a &lt;b onclick=c&gt;d&lt;/b&gt;</p>\n"}, {"<div>\na\n</div>", "<pre>&lt;div&gt;\na\n&lt;/div&gt;</pre>\n"},
		{"<!-- a\nb -->", "<pre>&lt;!-- a\nb --&gt;</pre>\n"},
	} {
		if got := Markdown(tt.text); got != tt.want {
			t.Errorf("%q gives\n%s\nnot\n%s", tt.text, got, tt.want)
		}
	}
}

// TestMarkdownBounds: a text that would take long is a paragraph as it is; one at the bound is not.
func TestMarkdownBounds(t *testing.T) {
	for _, tt := range []struct {
		text  string
		plain bool
	}{
		{strings.Repeat(">", maxMarks), false}, {strings.Repeat(">", maxMarks+1), true}, {strings.Repeat("*a_", maxMarks), true}, {strings.Repeat("1. ", maxMarks+1), true},
		{strings.Repeat("+ ", maxMarks+1), true}, {strings.Repeat("[a](", maxMarks), true}, {strings.Repeat("A sentence. ", 4000), false},
		{strings.Repeat("a", maxText), false}, {strings.Repeat("a", maxText+1), true},
	} {
		got := Markdown(tt.text)
		if plain := !strings.HasSuffix(got, "\n"); plain != tt.plain {
			t.Errorf("%.20q, %d bytes: plain is %v", tt.text, len(tt.text), plain)
		}
		if len(got) > 64*len(tt.text) {
			t.Errorf("%.20q, %d bytes: %d of HTML", tt.text, len(tt.text), len(got))
		}
	}
}

// harmless is all that Markdown may write between angle brackets.
var harmless = regexp.MustCompile(`^</?(?:p|br|hr|h[1-6]|blockquote|ul|ol|li|pre|code|em|strong|del|table|thead|tbody|tr|th|td)>$|^</a>$` +
	`|^<ol start="\d+">$|^<code class="language-[\w+#.-]+">$|^<t[hd] align="(?:left|center|right)">$|^<input (?:checked="" )?disabled="" type="checkbox">$` +
	`|^<a href="(?i:https?:|mailto:)[^"<>]*" rel="nofollow noreferrer(?: noopener)?"(?: target="_blank")?>$`)

var tag = regexp.MustCompile(`<[^>]*>?`)

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"a *b* <script>c</script>", "[a](javascript:b)", "![a](https://b \"c\")", "|a|\n|:-|\n|b|", "- [x] a\n\n  ```go\n  b", "<a@b.c> www.a.b http://a.b", "&lt;img src=x onerror=a&gt;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4096 {
			return
		}
		for _, got := range tag.FindAllString(Markdown(s), -1) {
			if !harmless.MatchString(got) {
				t.Fatalf("%q leaves %s", s, got)
			}
		}
	})
}
