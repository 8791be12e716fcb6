package markdown

import (
	"strings"

	"loki/internal/frontend/render/highlight"
)

// Styles are the looks of things, each the parameters of a Select Graphic Rendition
// sequence without ESC, [ and m, such as "1;38;5;208". The empty string is the style of what
// is around it. A Styles must not be changed once a Renderer uses it.
type Styles struct {
	Text     string // what has no other style
	Headings [6]string
	Mark     string // what marks something and is not text: number signs, fences
	Quote    string
	Bar      string // left of a quote
	Bullet   string
	Done     string // the tick of a task
	Code     string // inline
	Block    string // code between fences, as far as Token has no style for it
	Link     string
	URL      string // the address of a link
	Rule     string // rules, and the lines of tables
	Head     string // the head of a table
	Emphasis string
	Strong   string
	Strike   string
	HTML     string
	Math     string

	// Token returns the style of a token of code. Nil means that code is not
	// highlighted. It is called once for each kind.
	Token func(highlight.Kind) string
}

// style is the base style of a piece of text, and the inlines it is in.
type style uint32

const (
	emphasis style = 1 << iota
	strong
	strike
	code
	link
	address
	html
	math
	mark

	inlines = 1<<9 - 1
)

// The base styles lie above the inlines.
const (
	baseText style = iota << 9
	baseHeading1
	baseHeading2
	baseHeading3
	baseHeading4
	baseHeading5
	baseHeading6
	baseQuote
	baseBar
	baseBullet
	baseDone
	baseBlock
	baseMark
	baseRule
	baseHead
	baseHTML
	baseToken // and above: kinds of tokens
)

// palette has the sequences that switch styles on.
type palette struct {
	s     *Styles
	cache map[style]string
}

// sequence returns the escape sequence that switches st on in a terminal that is in its
// own style, the empty string if there is nothing to switch.
func (p *palette) sequence(st style) string {
	on, ok := p.cache[st]
	if !ok {
		if on = p.parameters(st); on != "" {
			on = "\x1b[" + on + "m"
		}
		if p.cache == nil {
			p.cache = make(map[style]string)
		}
		p.cache[st] = on
	}
	return on
}

func (p *palette) parameters(st style) string {
	s := p.s
	var parts []string
	add := func(part string) {
		if part != "" {
			parts = append(parts, part)
		}
	}
	add(s.Text)
	switch base := st &^ inlines; {
	case base >= baseToken:
		add(s.Block)
		add(s.Token(highlight.Kind((base - baseToken) >> 9)))
	case base >= baseHeading1 && base <= baseHeading6:
		add(s.Headings[(base-baseHeading1)>>9])
	default:
		add(map[style]string{
			baseQuote: s.Quote, baseBar: s.Bar, baseBullet: s.Bullet, baseDone: s.Done, baseBlock: s.Block,
			baseMark: s.Mark, baseRule: s.Rule, baseHead: s.Head, baseHTML: s.HTML,
		}[base])
	}
	for i, part := range []string{s.Emphasis, s.Strong, s.Strike, s.Code, s.Link, s.URL, s.HTML, s.Math, s.Mark} {
		if st&(1<<i) != 0 {
			add(part)
		}
	}
	return strings.Join(parts, ";")
}
