package export

import (
	"fmt"
	"html"
	"strings"

	"loki/internal/base/text"
)

// markdown returns the document as Markdown. What tools got and returned is in <details>, which GitHub and most readers fold.
func (d document) markdown() []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", strings.Join(strings.Fields(d.title), " "))
	for _, f := range d.facts {
		fmt.Fprintf(&b, "* %s: %s\n", f[0], f[1])
	}
	for _, s := range d.sections {
		fmt.Fprintf(&b, "\n## %s\n", s.who)
		for _, p := range s.parts {
			p.markdown(&b)
		}
	}
	return []byte(b.String())
}

// markdown writes a part.
func (p part) markdown(b *strings.Builder) {
	switch {
	case p.url != "":
		fmt.Fprintf(b, "\n![picture](%s)\n", p.url)
	case p.fold != "":
		mark := fenceOf(p.text)
		fmt.Fprintf(b, "\n<details><summary>%s</summary>\n\n%s%s\n%s\n%[2]s\n\n</details>\n", html.EscapeString(p.fold), mark, p.lang, strings.TrimRight(p.text, "\n"))
	default:
		fmt.Fprintf(b, "\n%s\n", strings.TrimRight(p.text, "\n"))
	}
}

// backticks finds what could end a fence.
var backticks = text.Regexp("`{3,}")

// fenceOf returns a fence for a text, which no line of it ends.
func fenceOf(s string) string {
	longest := 2
	for _, found := range backticks().FindAllString(s, -1) {
		longest = max(longest, len(found))
	}
	return strings.Repeat("`", longest+1)
}
