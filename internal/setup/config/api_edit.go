package config

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"loki/internal/base/fault"
	"loki/internal/base/value/yamldoc"
	"loki/internal/service/auth"
)

// AddKey adds a key of a server to the configuration file, which it makes if need be, and returns the
// mode that [APIAuth] has then: that of the file, if it has one. All other
// lines of the file stay as they are. If the file has a form in which a line cannot be added,
// the error, with code Config, shows the lines to add by hand, and the secret, which is what clients send.
func AddKey(ctx context.Context, file string, key auth.Key, secret string) (mode string, err error) {
	lines := keyLines(key)
	after, err := editAPI(ctx, file, func(f *sheet) error {
		api, ok := f.root.Get("api"), f.root.Has("api")
		if !ok {
			f.append("api:", indentLines(2, "auth:", indentLines(2, "mode: "+AuthStaticKeys, "keys:", indentLines(2, lines...))))
			return nil
		}
		authNode := api.Map().Get("auth")
		if authNode == nil {
			return f.insertBelow(api, "auth:", indentLines(2, "mode: "+AuthStaticKeys, "keys:", indentLines(2, lines...)))
		}
		section := authNode.Map()
		list := section.Get("keys")
		if list == nil {
			mode := []string{"mode: " + AuthStaticKeys}
			if section.Has("mode") || section.Has("jwt") {
				mode = nil
			}
			return f.insertBelow(authNode, append(mode, "keys:", indentLines(2, lines...))...)
		}
		return f.appendItem(list, lines)
	}, func(before, after []auth.Key) bool {
		return len(after) == len(before)+1 && after[len(before)].ID == key.ID && after[len(before)].Hash.String() == key.Hash.String()
	}, "add this below api, auth of %s:\nmode: "+AuthStaticKeys+"\nkeys:\n"+indentLines(2, lines...)+"\nthe key of "+key.Subject+", which is not shown again: "+secret)
	if err != nil {
		return "", err
	}
	return after.auth.Mode, nil
}

// RemoveKey takes the key with an id out of the configuration file, of which all other lines
// stay as they are. The error has code NotFound if there is no such key.
func RemoveKey(ctx context.Context, file, id string) error {
	_, err := editAPI(ctx, file, func(f *sheet) error {
		i := slices.IndexFunc(f.auth.Keys, func(k auth.Key) bool { return k.ID == id })
		if i < 0 {
			hint := "loki --list keys lists the keys"
			if of := slices.IndexFunc(f.auth.Keys, func(k auth.Key) bool { return k.Subject == id }); of >= 0 {
				hint = fmt.Sprintf("a key is named by its id; one of %s is %s. %s", id, f.auth.Keys[of].ID, hint)
			}
			return fault.New(fault.NotFound, "there is no key %s", id).WithHint("%s", hint)
		}
		return f.removeItem(f.root.Get("api").Map().Get("auth").Map().Get("keys"), i)
	}, func(before, after []auth.Key) bool {
		return len(after) == len(before)-1 && !slices.ContainsFunc(after, func(k auth.Key) bool { return k.ID == id })
	}, "remove it by hand below api, auth, keys of %s")
	return err
}

// keyLines returns the item of a list that is a key.
func keyLines(key auth.Key) []string {
	var w yamldoc.Writer
	w.Pair(0, "subject", key.Subject)
	w.Pair(0, "key_id", key.ID)
	w.Pair(0, "key_hash", key.Hash.String())
	w.Key(0, "scopes")
	w.WriteString(" [")
	for i, s := range key.Scopes {
		if i > 0 {
			w.WriteString(", ")
		}
		fmt.Fprintf(&w, "%q", s)
	}
	w.WriteString("]")
	lines := strings.Split(w.String(), "\n")
	for i := range lines {
		lines[i] = []string{"- ", "  "}[min(i, 1)] + lines[i]
	}
	return lines
}

// indentLines returns lines with n more spaces in front, as one text.
func indentLines(n int, lines ...string) string {
	all := strings.Split(strings.Join(lines, "\n"), "\n")
	for i := range all {
		all[i] = strings.Repeat(" ", n) + all[i]
	}
	return strings.Join(all, "\n")
}

// errForm says that the file is not written in a way that an edit of lines can follow.
var errForm = errors.New("its form is not one that can be edited line by line")

// editAPI changes the configuration file if the result says the same but for the keys, of which good
// decides, and returns the result. byHand is a hint, with the name of the file, for a file that cannot be edited.
func editAPI(ctx context.Context, file string, change func(*sheet) error, good func(before, after []auth.Key) bool, byHand string) (after *sheet, err error) {
	return editFile(ctx, file, change, func(before, after *sheet) bool {
		return good(before.auth.Keys, after.auth.Keys) && before.others("api.auth.keys", "api.auth.mode") == after.others("api.auth.keys", "api.auth.mode")
	}, byHand)
}

// sheet is a configuration file as lines, and what it says.
type sheet struct {
	lines []string // with their ends
	end   string   // of new lines
	root  *yamldoc.Map
	auth  APIAuth
}

func newSheet(file string, src []byte) (*sheet, error) {
	doc, err := yamldoc.Parse(file, src, yamldoc.HideSource)
	if err != nil {
		return nil, configError(err)
	}
	f := &sheet{lines: slices.Collect(strings.Lines(string(src))), end: "\n", root: doc.Root().Map()}
	if len(f.lines) > 0 && strings.HasSuffix(f.lines[0], "\r\n") {
		f.end = "\r\n"
	}
	if api := readAPI(f.root.Map("api"), file); api != nil {
		f.auth = api.Auth
	}
	return f, configError(doc.Err())
}

func (f *sheet) String() string { return strings.Join(f.lines, "") }

// others returns what the document says, less the values at some paths.
func (f *sheet) others(but ...string) string {
	var b strings.Builder
	var visit func(n *yamldoc.Node)
	visit = func(n *yamldoc.Node) {
		switch n.Kind() {
		case yamldoc.Mapping:
			for e := range n.Map().All() {
				if slices.Contains(but, e.Node.Path()) {
					continue
				}
				fmt.Fprintf(&b, "%q{", e.Key)
				visit(e.Node)
				b.WriteByte('}')
			}
		case yamldoc.List:
			items, _ := n.List()
			for _, item := range items {
				if slices.Contains(but, item.Path()) {
					continue
				}
				b.WriteByte('[')
				visit(item)
			}
		default:
			fmt.Fprintf(&b, "%d%q", n.Kind(), n.Literal())
		}
	}
	if n := f.root.Node(); n.Kind() == yamldoc.Mapping { // else the file is empty
		visit(n)
	}
	text := b.String()
	for _, section := range []string{"auth", "api", "clients"} { // one that is empty is as good as none
		text = strings.NewReplacer(fmt.Sprintf("%q{}", section), "", fmt.Sprintf(`%q{0""}`, section), "").Replace(text)
	}
	return text
}

// insert puts lines, each of which may be several, in front of line n, from 0.
func (f *sheet) insert(n int, lines ...string) {
	if n > 0 && !strings.HasSuffix(f.lines[n-1], "\n") {
		f.lines[n-1] += f.end
	}
	var added []string
	for line := range strings.SplitSeq(strings.Join(lines, "\n"), "\n") {
		added = append(added, line+f.end)
	}
	f.lines = slices.Insert(f.lines, n, added...)
}

// append puts lines behind all others.
func (f *sheet) append(lines ...string) { f.insert(len(f.lines), lines...) }

// insertBelow puts lines in front of the first key of n, a mapping or a null.
func (f *sheet) insertBelow(n *yamldoc.Node, lines ...string) error {
	key := n.KeyPos()
	indent := key.Column - 1 + 2
	for e := range n.Map().All() {
		if e.KeyPos.Line <= key.Line { // a flow mapping
			return errForm
		}
		indent = e.KeyPos.Column - 1
		break
	}
	if n.Literal() != "" { // a null that is written
		return errForm
	}
	f.insert(key.Line, indentLines(indent, lines...))
	return nil
}

// appendItem puts an item behind those of a list, or of a null.
func (f *sheet) appendItem(list *yamldoc.Node, item []string) error {
	key := list.KeyPos()
	items, _ := list.List()
	if len(items) == 0 {
		head := f.lines[key.Line-1]
		if list.Kind() == yamldoc.List {
			open, closing := strings.LastIndex(head, "["), strings.LastIndex(head, "]")
			if open < 0 || closing < open {
				return errForm
			}
			f.lines[key.Line-1] = strings.TrimRight(head[:open], " ") + head[closing+1:]
		}
		f.insert(key.Line, indentLines(key.Column-1+2, item...))
		return nil
	}
	dash, err := f.dash(items[0])
	if err != nil {
		return err
	}
	f.insert(f.endOf(items[len(items)-1], dash), indentLines(dash, item...))
	return nil
}

// removeItem takes an item out of a list.
func (f *sheet) removeItem(list *yamldoc.Node, i int) error {
	items, _ := list.List()
	dash, err := f.dash(items[i])
	if err != nil {
		return err
	}
	f.lines = slices.Delete(f.lines, items[i].Pos().Line-1, f.endOf(items[i], dash))
	if len(items) > 1 {
		return nil
	}
	head := &f.lines[list.KeyPos().Line-1]
	text, rest, ok := strings.Cut(*head, "keys:")
	if !ok {
		return errForm
	}
	*head = text + "keys: []" + rest
	return nil
}

// dash returns the column, from 0, of the dash in front of an item.
func (f *sheet) dash(item *yamldoc.Node) (int, error) {
	line := f.lines[item.Pos().Line-1]
	blank := len(line) - len(strings.TrimLeft(line, " "))
	if !strings.HasPrefix(line[blank:], "- ") || strings.Trim(line[blank+1:min(item.Pos().Column-1, len(line))], " ") != "" {
		return 0, errForm
	}
	return blank, nil
}

// endOf returns the number, from 0, of the line behind the last one of an item.
func (f *sheet) endOf(item *yamldoc.Node, dash int) int {
	end := item.Pos().Line
	for n := end; n < len(f.lines); n++ {
		text := strings.TrimLeft(f.lines[n], " ")
		indent := len(f.lines[n]) - len(text)
		switch {
		case strings.TrimSpace(text) == "" || strings.HasPrefix(text, "#"):
			continue
		case indent <= dash:
			return end
		}
		end = n + 1
	}
	return end
}
