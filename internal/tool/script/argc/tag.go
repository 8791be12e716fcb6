package argc

import (
	"slices"
	"strings"
)

// A cursor reads one tag. Its methods advance past what they recognize and leave it in
// place otherwise.
type cursor struct {
	s string
	i int
}

func (c *cursor) rest() string { return c.s[c.i:] }

func (c *cursor) literal(text string) bool {
	if !strings.HasPrefix(c.rest(), text) {
		return false
	}
	c.i += len(text)
	return true
}

// while takes bytes that ok accepts and returns them.
func (c *cursor) while(ok func(byte) bool) string {
	start := c.i
	for c.i < len(c.s) && ok(c.s[c.i]) {
		c.i++
	}
	return c.s[start:c.i]
}

func (c *cursor) blanks() bool { return c.while(isBlank) != "" }

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

func isNameByte(b byte) bool {
	return isAlnum(rune(b)) || strings.IndexByte("_-.:@", b) >= 0
}

// isShort says which characters a short name may be.
func isShort(b byte) bool {
	return isAlnum(rune(b)) || strings.IndexByte("!#$%*+,./:=?@[]^_{}~", b) >= 0
}

// isFunctionByte reports whether the name of a function may have a byte. What has a
// "=" is an assignment, as in "list=()".
func isFunctionByte(b byte) bool {
	return strings.IndexByte("\x00 \t\r\n\"'`()[]{}<>$&\\;|=", b) < 0
}

// tail takes the text that ends a tag. ok is false if something else follows.
func (c *cursor) tail() (text string, ok bool) {
	if c.rest() == "" {
		return "", true
	}
	if !isBlank(c.s[c.i]) {
		return "", false
	}
	text = strings.TrimSpace(c.rest())
	c.i = len(c.s)
	return text, true
}

// longPrefix takes the sign of a long name.
func (c *cursor) longPrefix() string {
	for _, sign := range []string{"--", "-", "+"} {
		if rest, ok := strings.CutPrefix(c.rest(), sign); ok {
			if strings.HasPrefix(rest, sign[:1]) {
				return "" // a third dash, or a second plus
			}
			c.i += len(sign)
			return sign
		}
	}
	return ""
}

// short takes a short name with its sign.
func (c *cursor) short() string {
	rest := c.rest()
	if len(rest) < 2 || rest[0] != '-' && rest[0] != '+' || !isShort(rest[1]) {
		return ""
	}
	c.i += 2
	return rest[:2]
}

// takeQuoted takes a quoted text and returns the text between the quotes.
func (c *cursor) takeQuoted() (text string, ok bool) {
	rest := c.rest()
	if rest == "" || rest[0] != '\'' && rest[0] != '"' {
		return "", false
	}
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '\\':
			i++
		case rest[0]:
			c.i += i + 1
			return rest[1:i], true
		}
	}
	return "", false
}

// takeBackquoted takes the name of a function in backquotes.
func (c *cursor) takeBackquoted() string {
	d := *c
	if !d.literal("`") {
		return ""
	}
	name := d.while(isFunctionByte)
	if name == "" || !d.literal("`") {
		return ""
	}
	*c = d
	return name
}

// bind takes the name of the environment variable that a parameter is bound to; "$" means the one
// made from the names of program and parameter.
func (c *cursor) bind() string {
	d := *c
	if !d.literal(" $") {
		return ""
	}
	if d.literal("$") {
		*c = d
		return "$"
	}
	name := d.while(func(b byte) bool { return b >= 'A' && b <= 'Z' || b == '_' })
	if name != "" {
		*c = d
	}
	return name
}

// notation takes the name of a value in angle brackets.
func (c *cursor) notation() (text string, ok bool) {
	rest := c.rest()
	if !strings.HasPrefix(rest, " <") {
		return "", false
	}
	depth := 0
	for i := 1; i < len(rest); i++ {
		switch rest[i] {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				c.i += i + 1
				return rest[2:i], i > 2
			}
		}
	}
	return "", false
}

// A body is a parameter's name and what is written right behind it.
type body struct {
	name      string
	modifier  byte // 0, or one of !*+~
	delimiter string
	choices   []string
	choicesBy string
	unchecked bool
	fallback  *string
	defaultBy string
}

// body takes the first of the forms that matches.
func (c *cursor) body() (body, bool) {
	b := body{name: c.while(isNameByte)}
	if b.name == "" {
		return b, false
	}
	if c.literal("=") {
		c.fallback(&b)
		return b, true
	}
	c.modifier(&b)
	if d := *c; d.choices(&b) {
		*c = d
	}
	return b, true
}

// fallback takes a default, behind its "=".
func (c *cursor) fallback(b *body) {
	if name := c.takeBackquoted(); name != "" {
		b.defaultBy = name
		return
	}
	text, ok := c.takeQuoted()
	if !ok {
		text = c.while(func(b byte) bool { return !isBlank(b) })
	}
	b.fallback = &text
}

func (c *cursor) modifier(b *body) {
	rest := c.rest()
	if rest == "" || strings.IndexByte("!~*+", rest[0]) < 0 {
		return
	}
	b.modifier = rest[0]
	c.i++
	if (b.modifier == '*' || b.modifier == '+') && len(rest) > 1 && strings.IndexByte(",:;@|/", rest[1]) >= 0 {
		b.delimiter = rest[1:2]
		c.i++
	}
}

// choices takes the choices in square brackets.
func (c *cursor) choices(b *body) bool {
	if !c.literal("[") {
		return false
	}
	d := *c
	unchecked := d.literal("?")
	if name := d.takeBackquoted(); name != "" && d.literal("]") {
		*c, b.choicesBy, b.unchecked = d, name, unchecked
		return true
	}
	first := c.literal("=")
	var list []string
	for {
		choice, ok := c.choice()
		if !ok {
			return false
		}
		list = append(list, choice)
		if c.literal("]") {
			break
		}
		if !c.literal("|") {
			return false
		}
	}
	if first && len(list) < 2 {
		return false
	}
	b.choices = list
	if first {
		b.fallback = &list[0]
	}
	return true
}

func (c *cursor) choice() (string, bool) {
	if text, ok := c.takeQuoted(); ok {
		return text, true
	}
	if rest := c.rest(); strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, "`") {
		return "", false
	}
	return c.while(func(b byte) bool { return b != '|' && b != ']' }), true
}

// param makes a parameter of its written name. name has no sign.
func (b body) param(kind Kind) *Param {
	p := &Param{
		Kind: kind, ID: b.name,
		Multiple: b.modifier == '*' || b.modifier == '+', Rest: b.modifier == '~', Delimiter: b.delimiter,
		Choices: b.choices, ChoicesBy: b.choicesBy, Unchecked: b.unchecked,
		Default: b.fallback, DefaultBy: b.defaultBy,
	}
	p.Required = (b.modifier == '!' || b.modifier == '+') && p.Default == nil && p.DefaultBy == ""
	return p
}

// name gives a flag or option its names, taking from the written long one what says how
// the value follows it.
func (p *Param) name(short, sign, long string) {
	if len(long) > 1 {
		switch {
		case strings.HasSuffix(long, "::"):
			long = long[:len(long)-1]
		case strings.HasSuffix(long, ":"):
			long, p.Assigned = long[:len(long)-1], true
		}
	}
	if len(long) > 1 {
		switch {
		case strings.HasSuffix(long, "--"):
			long = long[:len(long)-1]
		case strings.HasSuffix(long, "-"):
			long, p.Prefixed = long[:len(long)-1], true
		}
	}
	p.ID, p.Short, p.Long = long, short, sign+long
	if sign != "--" && len(long) == 1 && short == "" {
		p.Short, p.Long = p.Long, ""
	}
	if sign == "+" {
		p.ID = "plus_" + long
	}
}

// attempts reads a tag in several ways, each from c, and takes the first that reads all of
// it. Of the others c keeps the place where the best one got stuck.
func (c *cursor) attempts(ways ...func(*cursor) *Param) *Param {
	far := c.i
	for _, way := range ways {
		d := *c
		if p := way(&d); p != nil {
			*c = d
			return p
		}
		far = max(far, d.i)
	}
	c.i = far
	return nil
}

// flag takes all that follows "@flag ".
func (c *cursor) flag() *Param {
	long := func(c *cursor, short string) *Param {
		sign := c.longPrefix()
		if sign == "" {
			return nil
		}
		name := c.while(isNameByte)
		if name == "" {
			return nil
		}
		p := &Param{Kind: Flag, Multiple: c.literal("*"), Bind: c.bind()}
		p.name(short, sign, name)
		return p.describe(c)
	}
	return c.attempts(withShort(long), func(c *cursor) *Param { return long(c, "") }, func(c *cursor) *Param {
		short := c.short()
		if short == "" {
			return nil
		}
		p := &Param{Kind: Flag, ID: short[1:], Short: short, Multiple: c.literal("*"), Bind: c.bind()}
		if short[0] == '+' {
			p.ID = "plus_" + p.ID
		}
		return p.describe(c)
	})
}

// option takes all that follows "@option ".
func (c *cursor) option() *Param {
	long := func(c *cursor, short string) *Param {
		sign := c.longPrefix()
		if sign == "" {
			return nil
		}
		b, ok := c.body()
		if !ok {
			return nil
		}
		p := b.param(Option)
		p.name(short, sign, b.name)
		p.Bind = c.bind()
		for {
			text, ok := c.notation()
			if !ok {
				break
			}
			p.Labels = append(p.Labels, text)
		}
		p.label()
		return p.describe(c)
	}
	return c.attempts(withShort(long), func(c *cursor) *Param { return long(c, "") })
}

// withShort reads a short name before the long one.
func withShort(long func(c *cursor, short string) *Param) func(*cursor) *Param {
	return func(c *cursor) *Param {
		short := c.short()
		if short == "" || !c.blanks() {
			return nil
		}
		return long(c, short)
	}
}

// arg takes all that follows "@arg ".
func (c *cursor) arg() *Param {
	return c.attempts(func(c *cursor) *Param {
		b, ok := c.body()
		if !ok {
			return nil
		}
		p := b.param(Arg)
		p.Bind = c.bind()
		if text, ok := c.notation(); ok {
			p.Labels = []string{label(text)}
		} else {
			p.Labels = []string{label(b.name)}
		}
		return p.describe(c)
	})
}

// env takes all that follows "@env ".
func (c *cursor) env() *Param {
	return c.attempts(func(c *cursor) *Param {
		b, ok := c.body()
		if !ok {
			return nil
		}
		return b.param(Env).describe(c)
	})
}

// describe takes the tail; it returns nil if there is something else.
func (p *Param) describe(c *cursor) *Param {
	text, ok := c.tail()
	if !ok {
		return nil
	}
	p.Description = text
	return p
}

// label brings the labels of an option into form.
func (p *Param) label() {
	if len(p.Labels) == 0 {
		name := p.ID
		if bare, ok := strings.CutPrefix(name, "plus_"); ok && p.Switch()[0] == '+' {
			name = bare
		}
		p.Labels = []string{name}
	} else if last := p.Labels[len(p.Labels)-1]; len(last) > 1 && strings.IndexByte("?+*", last[len(last)-1]) >= 0 {
		p.Last = last[len(last)-1]
		p.Labels[len(p.Labels)-1] = last[:len(last)-1]
	}
	for i, text := range p.Labels {
		p.Labels[i] = label(text)
	}
}

// names takes the names that follow "@alias ", separated by commas.
func (c *cursor) names() []string {
	var list []string
	for {
		name := c.while(isNameByte)
		if name == "" {
			return nil
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
		d := *c
		d.blanks()
		if !d.literal(",") {
			return list
		}
		d.blanks()
		if d.rest() == "" || !isNameByte(d.s[d.i]) {
			return list
		}
		*c = d
	}
}
