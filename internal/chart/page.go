package chart

import (
	"fmt"
	"strings"
)

// Page is a drawing as a page of HTML with what it was measured on and all figures, in one file that loads nothing.
type Page struct {
	Drawing
	About  [][2]string // names and values: machine, commit, command
	Tables []Table
}

// Table is figures as text. Cells of the first column are names.
type Table struct {
	Title string
	Head  []string
	Rows  [][]string
}

const pageStyle = `:root{color-scheme:light dark;--page:#fff;--ink:#1f2328;--soft:#57606a;--edge:#e1e4e8}` +
	`@media(prefers-color-scheme:dark){:root{--page:#0d1117;--ink:#e6edf3;--soft:#9aa4af;--edge:#2b313a}}` +
	`*{box-sizing:border-box}body{margin:0 auto;max-width:1200px;padding:24px 20px 48px;background:var(--page);color:var(--ink);` +
	`font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif}h1{font-size:22px;margin:0 0 12px}h2{font-size:16px;margin:36px 0 8px}` +
	`dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0 0 28px}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}` +
	`code{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,monospace}main>section{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));gap:36px 40px}` +
	`svg{width:100%;height:auto;display:block}.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:14px}` +
	`th,td{padding:4px 14px 4px 0;text-align:right;border-bottom:1px solid var(--edge);white-space:nowrap}th{color:var(--soft);font-weight:600}` +
	`th:first-child,td:first-child{text-align:left}@media(max-width:600px){dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}}`

// HTML is the page.
func (p *Page) HTML() []byte {
	c := &canvas{}
	c.printf("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n")
	c.printf("<title>%s</title>\n<style>%s%s</style>\n</head>\n<body>\n<main>\n", escape(p.Title), pageStyle, style)
	c.printf("<h1>%s</h1>\n<dl>\n", escape(p.Title))
	for _, a := range p.About {
		value := escape(a[1])
		if a[0] == "command" {
			value = "<code>" + value + "</code>"
		}
		c.printf("<dt>%s</dt><dd>%s</dd>\n", escape(a[0]), value)
	}
	c.printf("</dl>\n<section>\n")
	for i, panel := range p.Panels {
		h := panel.height(column)
		c.open(column, h, panel.title(), panel.describe(), fmt.Sprint(i+1))
		panel.draw(c, column, h)
		c.printf("</svg>\n")
	}
	c.printf("</section>\n")
	for _, t := range p.Tables {
		t.html(c)
	}
	c.printf("</main>\n</body>\n</html>\n")
	return c.Bytes()
}

func (t *Table) html(c *canvas) {
	c.printf("<h2>%s</h2>\n<div class=\"wide\" role=\"region\" aria-label=\"%s\" tabindex=\"0\"><table>\n<thead><tr>", escape(t.Title), escape(t.Title))
	for _, h := range t.Head {
		c.printf(`<th scope="col">%s</th>`, escape(h))
	}
	c.printf("</tr></thead>\n<tbody>\n")
	for _, row := range t.Rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, "<td>"+escape(cell)+"</td>")
		}
		c.printf("<tr>%s</tr>\n", strings.Join(cells, ""))
	}
	c.printf("</tbody></table></div>\n")
}
