package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"loki/internal/base/text"
	"loki/internal/base/value"
)

// raw is a node without its path, which differs for every alias that leads to it.
type raw struct {
	kind    Kind
	pos     Pos
	text    string      // scalar: literal text, for people; "" for a null that is not written
	scalar  value.Value // scalar: its value; null for a number JSON cannot express
	quoted  bool        // scalar: quoted or a block scalar
	items   []*raw      // List
	entries []entry     // Mapping, keys once each
	weight  int         // approximate bytes with aliases resolved
	depth   int         // levels of collections below and including this one
	open    bool        // still being built
}

type entry struct {
	key string
	pos Pos
	raw *raw
}

// tree parses the text. A problem that leaves nothing to work with is returned;
// others are reported.
func (d *Doc) tree() (root *raw, problem *Problem) {
	if p := d.checkText(); p != nil {
		return nil, p
	}
	// The library may panic on text it did not foresee; that is a syntax error to us.
	defer func() {
		if r := recover(); r != nil {
			root, problem = nil, &Problem{File: d.file, Msg: fmt.Sprintf("not YAML that can be read (%v)", r)}
		}
	}()
	tokens := lexer.Tokenize(string(d.src))
	if p := d.checkShape(tokens); p != nil {
		return nil, p
	}
	// Keys that occur twice are found by the builder, which can say where.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		return nil, d.syntaxProblem(err)
	}
	b := builder{doc: d, anchors: map[string]*raw{}}
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.DirectiveType {
			continue
		}
		if root != nil {
			return nil, d.problem(posOf(cmp.Or(doc.Start, doc.Body.GetToken())), "", "a second document begins here, only one is allowed")
		}
		root = b.node(doc.Body, "")
	}
	if root == nil {
		root = &raw{kind: Null, pos: Pos{1, 1}}
	}
	return root, b.fatal
}

// builder turns the library's tree into ours.
type builder struct {
	doc     *Doc
	anchors map[string]*raw
	fatal   *Problem // the first problem that stops the building
}

// fail stops the building. It returns something to put in the place of the node.
func (b *builder) fail(pos Pos, path, msg string) *raw {
	if b.fatal == nil {
		b.fatal = b.doc.problem(pos, path, msg)
	}
	return &raw{kind: Null, pos: pos}
}

func (b *builder) node(n ast.Node, path string) *raw {
	r := &raw{}
	b.fill(r, n, path)
	return r
}

// fill builds n into r, which an anchor may already have given a name.
func (b *builder) fill(r *raw, n ast.Node, path string) {
	if b.fatal != nil || n == nil {
		return
	}
	r.pos = posOf(n.GetToken())
	switch n := n.(type) {
	case *ast.MappingNode:
		b.mapping(r, n.Values, path)
	case *ast.MappingValueNode:
		b.mapping(r, []*ast.MappingValueNode{n}, path)
	case *ast.SequenceNode:
		b.list(r, n.Values, path)
	case *ast.AnchorNode:
		b.anchors[n.Name.GetToken().Value] = r
		r.open = true
		b.fill(r, n.Value, path)
		r.open = false
	case *ast.AliasNode:
		pos := r.pos
		*r = *b.alias(n, path)
		r.pos = pos
	case *ast.TagNode:
		b.tag(r, n, path)
	case *ast.LiteralNode:
		r.setString(n.Value.Value)
	case *ast.StringNode:
		r.setScalar(n.Token.Value, n.Token.Type != token.StringType)
	case *ast.NullNode:
		if n.Token.Type == token.ImplicitNullType {
			r.setScalar("", false)
			return
		}
		r.setScalar(n.Token.Value, false)
	case ast.ScalarNode:
		r.setScalar(n.GetToken().Value, false)
	default:
		b.fail(r.pos, path, "unexpected "+n.Type().String())
	}
}

func (r *raw) setScalar(text string, quoted bool) {
	if quoted {
		r.setString(text)
		return
	}
	r.text = text
	r.kind, r.scalar = resolve(text)
	r.weight = 16 + len(text)
}

func (r *raw) setString(text string) {
	r.kind, r.text, r.scalar, r.quoted = String, text, value.Of(text), true
	r.weight = 16 + len(text)
}

func (b *builder) mapping(r *raw, values []*ast.MappingValueNode, path string) {
	r.kind, r.depth = Mapping, 1
	r.entries = make([]entry, 0, len(values))
	first := make(map[string]Pos, len(values))
	for i, v := range values {
		key, keyPos, ok := b.key(v.Key, path)
		if !ok {
			return
		}
		if i == 0 && v.Key.GetToken() != nil && r.pos.Line == keyPos.Line && r.pos.Column > keyPos.Column {
			r.pos = keyPos // the library places a block mapping at its first colon
		}
		child := b.node(v.Value, join(path, key))
		if where, found := first[key]; found {
			b.doc.report(keyPos, join(path, key), fmt.Sprintf("key %s occurs twice, first in line %d", quote(key), where.Line))
			continue
		}
		first[key] = keyPos
		r.entries = append(r.entries, entry{key, keyPos, child})
		b.grow(r, child, len(key), path)
	}
}

func (b *builder) list(r *raw, values []ast.Node, path string) {
	r.kind, r.depth = List, 1
	r.items = make([]*raw, 0, len(values))
	for i, v := range values {
		child := b.node(v, index(path, i))
		r.items = append(r.items, child)
		b.grow(r, child, 0, path)
	}
}

// grow accounts for a child of r.
func (b *builder) grow(r, child *raw, extra int, path string) {
	r.depth = max(r.depth, child.depth+1)
	r.weight += 16 + extra + child.weight
	switch {
	case r.depth > MaxDepth:
		b.fail(child.pos, path, fmt.Sprintf("nested deeper than %d levels", MaxDepth))
	case r.weight > MaxExpanded:
		b.fail(child.pos, path, "the aliases of the document expand to an unreasonable size")
	}
}

// key returns the literal text of a mapping key.
func (b *builder) key(n ast.MapKeyNode, path string) (text string, pos Pos, ok bool) {
	pos = posOf(n.GetToken())
	var inner ast.Node = n
	if explicit, is := n.(*ast.MappingKeyNode); is {
		inner = explicit.Value
	}
	if _, is := inner.(*ast.MergeKeyNode); is {
		return "<<", pos, true
	}
	k := b.node(inner, path)
	if b.fatal != nil {
		return "", pos, false
	}
	switch {
	case k.kind == List || k.kind == Mapping:
		b.fail(pos, path, "a mapping key must be a scalar, not "+k.kind.String())
		return "", pos, false
	case k.kind == Null && k.text == "":
		b.fail(pos, path, "a mapping key is missing before the colon")
		return "", pos, false
	}
	return k.text, pos, true
}

func (b *builder) alias(n *ast.AliasNode, path string) *raw {
	name, pos := n.Value.GetToken().Value, posOf(n.GetToken())
	target, ok := b.anchors[name]
	switch {
	case !ok:
		return b.fail(pos, path, fmt.Sprintf("alias *%s has no anchor &%s before it", name, name))
	case target.open:
		return b.fail(pos, path, fmt.Sprintf("alias *%s is inside its own anchor", name))
	}
	return target
}

// tag handles the tags of YAML's core schema.
func (b *builder) tag(r *raw, n *ast.TagNode, path string) {
	tag := n.GetToken().Value
	pos := r.pos
	b.fill(r, n.Value, path)
	if b.fatal != nil {
		return
	}
	want := map[string]Kind{
		"!!str": String, "!": String, "!!null": Null, "!!bool": Bool, "!!int": Int, "!!float": Float, "!!seq": List, "!!map": Mapping,
	}
	kind, known := want[tag]
	if !known {
		b.fail(pos, path, fmt.Sprintf("tag %s is not supported", quote(tag)))
		return
	}
	collection := r.kind == List || r.kind == Mapping
	switch {
	case kind == r.kind, tag == "!" && collection:
	case collection || kind == List || kind == Mapping:
		b.doc.report(pos, path, fmt.Sprintf("tag %s does not fit %s", tag, r.kind))
	case kind == String:
		r.setString(r.text)
	default:
		found := r.kind
		r.kind, r.scalar = resolve(r.text)
		r.quoted = false
		if kind == Float && r.kind == Int {
			f, _ := r.scalar.AsFloat()
			r.kind, r.scalar = Float, value.Of(f)
		}
		if r.kind != kind {
			b.doc.report(pos, path, fmt.Sprintf("tag %s does not fit %s", tag, found))
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote returns s in double quotes, shortened if it is long.
func quote(s string) string { return strconv.Quote(text.CutRunes(s, 60)) }

// keysOf returns the keys of a mapping in order.
func (r *raw) keysOf() []string {
	keys := make([]string, 0, len(r.entries))
	for _, e := range r.entries {
		keys = append(keys, e.key)
	}
	return slices.Clip(keys)
}
