package line

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// names are keys that tests write in angle brackets.
var names = strings.NewReplacer(
	"<cr>", "\r", "<tab>", "\t", "<s-tab>", "\x1b[Z", "<bs>", "\x7f", "<del>", "\x1b[3~",
	"<up>", "\x1b[A", "<down>", "\x1b[B", "<right>", "\x1b[C", "<left>", "\x1b[D", "<home>", "\x1b[H", "<end>", "\x1b[F",
	"<c-left>", "\x1b[1;5D", "<c-right>", "\x1b[1;5C", "<c-home>", "\x1b[1;5H", "<c-end>", "\x1b[1;5F",
	"<s-left>", "\x1b[1;2D", "<s-right>", "\x1b[1;2C", "<s-up>", "\x1b[1;2A", "<s-down>", "\x1b[1;2B", "<s-home>", "\x1b[1;2H",
	"<c-s-left>", "\x1b[1;6D", "<c-s-a>", "\x1b[97;6u", "<c-del>", "\x1b[3;5~", "<c-bs>", "\x1b[127;5u", "<s-cr>", "\x1b[13;2u", "<c-cr>", "\x1b[13;5u",
	"<paste>", pasteBegin, "</paste>", pasteEnd,
	"<c-a>", "\x01", "<c-b>", "\x02", "<c-c>", "\x03", "<c-d>", "\x04", "<c-e>", "\x05", "<c-f>", "\x06", "<c-g>", "\x07", "<c-h>", "\x08",
	"<c-j>", "\x0a", "<c-k>", "\x0b", "<c-l>", "\x0c", "<c-n>", "\x0e", "<c-o>", "\x0f", "<c-p>", "\x10", "<c-r>", "\x12", "<c-s>", "\x13",
	"<c-t>", "\x14", "<c-u>", "\x15", "<c-w>", "\x17", "<c-y>", "\x19", "<c-z>", "\x1a",
)

// typist types at a model.
type typist struct {
	m    *model
	keys decoder
}

// types presses keys, as names has them, and returns the last thing that one asked for.
func (p *typist) types(keys string) outcome {
	for _, c := range "bdfulcw" { // Alt and a letter
		keys = strings.ReplaceAll(keys, "<m-"+string(c)+">", "\x1b"+string(c))
	}
	last := goOn
	press := func(k key) {
		if what := p.m.press(k); what != goOn {
			last = what
		}
	}
	for i, part := range strings.Split(names.Replace(keys), "<esc>") {
		if i > 0 {
			press(key{name: "esc"})
		}
		p.keys.add([]byte(part))
		for {
			k, ok := p.keys.next(true)
			if !ok {
				break
			}
			if k.text == "" || k.paste {
				press(k)
				continue
			}
			for _, r := range k.text { // as people type
				press(key{text: string(r)})
			}
		}
	}
	return last
}

// shows returns the text with "|" at the cursor and brackets around what is selected.
func (p *typist) shows() string {
	b := &p.m.buf
	from, to := b.selection()
	if from == to {
		return b.text[:b.cursor] + "|" + b.text[b.cursor:]
	}
	if b.cursor == from {
		return b.text[:from] + "|[" + b.text[from:to] + "]" + b.text[to:]
	}
	return b.text[:from] + "[" + b.text[from:to] + "]|" + b.text[to:]
}

var earlier = []string{"first", "git status", "two\nlines", "git log"}

func newTypist(o Options, initial string) *typist {
	return &typist{m: newModel(&o, earlier, initial)}
}

func TestEmacs(t *testing.T) {
	for _, tt := range []struct{ name, initial, keys, want string }{
		{"type", "", "hello", "hello|"},
		{"wide", "", "世界<left>x", "世x|界"},
		{"combining", "e\u0301a", "<left><bs>", "|a"},
		{"emoji", "a👨‍👩‍👧b", "<left><bs>", "a|b"},
		{"accent_joins_letter", "e", "\u0301x<left><left>", "|e\u0301x"},
		{"arrows", "abc", "<left><left>x<right>y", "axby|c"},
		{"ctrl_b_f", "abc", "<c-b><c-b><c-f>x", "abx|c"},
		{"home_end", "one\ntwo", "<home>x<end>y<c-a>z", "one\nz|xtwoy"},
		{"ctrl_e", "abc", "<c-a><c-e>x", "abcx|"},
		{"buffer_ends", "one\ntwo", "<c-home>a<c-end>b", "aone\ntwob|"},
		{"words", "one two-three four", "<c-left><m-b>x", "one two-x|three four"},
		{"words_right", "one two", "<c-home><m-f>x<c-right>y", "onex twoy|"},
		{"backspace_ctrl_h_delete", "abcdef", "<bs><c-h><c-a><del>", "|bcd"},
		{"delete_words", "one two three", "<c-bs>x<c-home><c-del>", "| two x"},
		{"alt_d", "one two", "<c-a><m-d>", "| two"},
		{"ctrl_w_to_blank", "say a/b.c", "<c-w>", "say |"},
		{"kill_to_end", "one\ntwo", "<c-home><c-f><c-k>", "o|\ntwo"},
		{"kill_line_feed", "one\ntwo", "<c-home><end><c-k>", "one|two"},
		{"kill_to_start", "one\ntwo", "<left><c-u>", "one\n|o"},
		{"yank", "one two", "<c-w><c-a><c-y>", "two|one "},
		{"kills_in_a_row_are_one", "one two three", "<c-w><c-w><c-a><c-y>", "two three|one "},
		{"kills_forward", "a b c", "<c-a><m-d><m-d><c-e><c-y>", " ca b|"},
		{"undo_words", "", "one two<c-z>", "one |"},
		{"undo_all_redo", "", "one two<c-z><c-z><c-g>", "one |"},
		{"undo_kill", "one two", "<c-w><c-z>", "one two|"},
		{"redo_dropped", "", "a<c-z>b<c-g>", "b|"},
		{"transpose", "abc", "<c-t>", "acb|"},
		{"transpose_middle", "abc", "<left><left><c-t>", "ba|c"},
		{"transpose_start", "abc", "<c-a><c-t>", "|abc"},
		{"upper_lower_capital", "one TWO three", "<c-a><m-u><m-l><m-c>", "ONE two Three|"},
		{"newlines", "", "a<c-j>b<s-cr>c<c-cr>d\x1b\re", "a\nb\nc\nd\ne|"},
		{"lines_up_down", "abc\nd\nefg", "<up><up>x<down><down>y", "abcx\nd\nefgy|"},
		{"column_is_kept", "abcd\ne\nfghi", "<left><up><up>x", "abcx|d\ne\nfghi"},
		{"history_up", "draft", "<up>", "git log|"},
		{"history_lines_first", "draft", "<up><up><up>x", "twox|\nlines"},
		{"history_back_to_draft", "draft", "<up><c-p><down><down><c-n>", "draft|"},
		{"history_keeps_edits", "", "<up>!<c-n><up>", "git log!|"},
		{"history_end", "", "<up><up><up><up><up><up><up><up><up>", "first|"},
		{"select", "abc", "<s-left><s-left>", "a|[bc]"},
		{"select_and_type", "abc", "<s-left><s-left>x", "ax|"},
		{"select_and_delete", "abc", "<s-home><bs>", "|"},
		{"select_words", "one two", "<c-s-left>", "one |[two]"},
		{"select_lines", "one\ntwo", "<s-up>", "one|[\ntwo]"},
		{"select_all", "one\ntwo", "<up><c-s-a>", "[one\ntwo]|"},
		{"select_cut_paste", "abc", "<s-left><c-w><c-a><c-y>", "c|ab"},
		{"select_copy", "abc", "<s-left>\x1bw<c-a><c-y>", "c|abc"},
		{"selection_ends", "abc", "<s-left><s-left><right>x", "abcx|"},
		{"esc_ends_selection", "abc", "<s-left><esc><bs>", "a|c"},
		{"paste", "", "a<paste>x\r\ny\tz\x1b[2J</paste>b", "ax\ny\tz[2Jb|"},
		{"paste_is_one_undo", "a", "<paste>b c d</paste><c-z>", "a|"},
		{"ctrl_d_deletes", "ab", "<c-a><c-d>", "|b"},
		{"search", "", "<c-r>stat", "git |[stat]us"},
		{"search_older_newer", "", "<c-r>git<c-r><c-s>", "|[git] log"},
		{"search_arrows", "", "<c-r>git<up>", "|[git] status"},
		{"search_failing", "", "<c-r>gitx", "|[git] log"},
		{"search_backspace", "", "<c-r>gitx<bs>", "|[git] log"},
		{"search_cancel", "draft", "<c-r>git<c-g>", "draft|"},
		{"search_esc", "draft", "<c-r>git<esc>!", "draft!|"},
		{"search_and_edit", "", "<c-r>stat<end>!", "git status!|"},
		{"search_tab_accepts", "", "<c-r>stat<tab>!", "git !|status"},
		{"search_moves_history", "", "<c-r>stat<end><up>", "first|"},
		{"search_ignores_case", "", "<c-r>GIT", "|"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTypist(Options{}, tt.initial)
			p.types(tt.keys)
			if got := p.shows(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVi(t *testing.T) {
	for _, tt := range []struct{ name, initial, keys, want string }{
		{"inserts_at_first", "", "hello", "hello|"},
		{"esc_moves_left", "abc", "<esc>", "ab|c"},
		{"esc_typed_fast", "abc", "\x1bhx", "a|c"},
		{"h_l", "abcd", "<esc>hhlx", "ab|d"},
		{"l_stops_at_end", "abc", "<esc>llll", "ab|c"},
		{"counts", "abcdef", "<esc>03lx", "abc|ef"},
		{"zero_dollar_caret", "  abc", "<esc>0x$x^x", " |b"},
		{"w_b_e", "one two-x three", "<esc>0wwwb", "one two|-x three"},
		{"e", "one two", "<esc>0e", "on|e two"},
		{"big_words", "a-b c-d", "<esc>0Wx", "a-b |-d"},
		{"big_back", "a-b c-d", "<esc>BB", "|a-b c-d"},
		{"big_end", "a-b c-d", "<esc>0E", "a-|b c-d"},
		{"find", "abcabc", "<esc>0fcx", "ab|abc"},
		{"find_again", "xaxaxa", "<esc>0fa;;x", "xaxa|x"},
		{"find_other_way", "xaxaxa", "<esc>0fa;,x", "x|xaxa"},
		{"till", "abcabc", "<esc>0tcx", "a|cabc"},
		{"till_again", "abcabc", "<esc>0tc;x", "abca|c"},
		{"find_back", "abcabc", "<esc>Fax", "abc|bc"},
		{"till_back", "abcabc", "<esc>Tax", "abca|c"},
		{"find_missing", "abc", "<esc>0fzx", "|bc"},
		{"lines", "abc\ndef", "<esc>kx", "a|b\ndef"},
		{"gg_G", "one\ntwo\nthree", "<esc>ggxG", "ne\ntwo\nthre|e"},
		{"dw", "one two three", "<esc>0dw", "|two three"},
		{"dw_keeps_line_feed", "one\ntwo", "<esc>ggdw", "|\ntwo"},
		{"d2w", "one two three", "<esc>0d2w", "|three"},
		{"two_dw", "one two three", "<esc>02dw", "|three"},
		{"de", "one two", "<esc>0de", "| two"},
		{"db", "one two", "<esc>db", "one |o"},
		{"d_dollar", "one two", "<esc>0wD", "one| "},
		{"dd", "one\ntwo\nthree", "<esc>kdd", "one\n|three"},
		{"dd_last", "one\ntwo", "<esc>dd", "|one"},
		{"two_dd", "one\ntwo\nthree", "<esc>gg2dd", "|three"},
		{"dj", "one\ntwo\nthree", "<esc>ggdj", "|three"},
		{"df", "abcdef", "<esc>0dfd", "|ef"},
		{"dt", "abcdef", "<esc>0dtd", "|def"},
		{"cw", "one two", "<esc>0cwxx", "xx| two"},
		{"cw_one_letter", "a b", "<esc>0cwxx", "xx| b"},
		{"cc", "one\ntwo", "<esc>ccx", "one\nx|"},
		{"C", "one two", "<esc>0wCx", "one x|"},
		{"s", "abc", "<esc>0sxy", "xy|bc"},
		{"S", "abc", "<esc>Sx", "x|"},
		{"ciw", "one two three", "<esc>bhciwx", "one twox|three"},
		{"daw", "one two three", "<esc>0wdaw", "one |three"},
		{"ci_quote", `say "hello you" now`, `<esc>0ci"x`, `say "x|" now`},
		{"da_quote", `say "hello" now`, `<esc>0da"`, `say | now`},
		{"yy_p", "one\ntwo", "<esc>ggyyp", "one\n|one\ntwo"},
		{"yy_P", "one\ntwo", "<esc>yyP", "one\n|two\ntwo"},
		{"yw_p", "one two", "<esc>0ywP", "one| one two"},
		{"xp", "abc", "<esc>0xp", "b|ac"},
		{"three_p", "ab", "<esc>0x3p", "baa|a"},
		{"i_a_I_A", "bc", "<esc>Ix<esc>Ay<esc>hiz<esc>aw", "xbzw|cy"},
		{"o_O", "one", "<esc>ox<esc>Oy", "one\ny|\nx"},
		{"r", "abc", "<esc>0rx", "|xbc"},
		{"r_count", "abc", "<esc>02rx", "x|xc"},
		{"tilde", "abC", "<esc>03~", "AB|c"},
		{"X", "abc", "<esc>X", "a|c"},
		{"undo", "one two", "<esc>0dwu", "|one two"},
		{"undo_insertion", "one", "<esc>A two three<esc>u", "on|e"},
		{"redo", "one two", "<esc>0dwuU", "|two"},
		{"repeat_x", "abcdef", "<esc>0x..", "|def"},
		{"repeat_dw", "a b c d", "<esc>0dw.", "|c d"},
		{"repeat_change", "one two three", "<esc>0cwx<esc>w.w.", "x x |x"},
		{"repeat_count", "abcdef", "<esc>0x3.", "|ef"},
		{"repeat_not_motions", "abc", "<esc>0xl.", "|b"},
		{"operator_canceled", "one two", "<esc>0d<esc>x", "|ne two"},
		{"history", "", "<esc>k", "git lo|g"},
		{"history_j", "draft", "<esc>kj", "draf|t"},
		{"tab_does_nothing", "a", "<esc><tab>", "|a"},
		{"insert_mode_common_keys", "one two", "<c-a>x<c-e>y<c-w>", "xone |"},
		{"wide", "世界", "<esc>x", "|世"},
		{"paste_in_normal_mode", "ab", "<esc><paste>xy</paste>", "axy|b"},
		{"keys_in_one_piece", "one two", "\x1b0dwix", "x|two"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTypist(Options{Vi: true}, tt.initial)
			p.types(tt.keys)
			if got := p.shows(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	incomplete := func(s string) bool { return strings.HasPrefix(s, ":::") && !strings.HasSuffix(s[3:], ":::") }
	for _, tt := range []struct {
		name string
		vi   bool
		keys string
		want outcome
		text string
	}{
		{"enter", false, "abc<cr>", submit, "abc"},
		{"enter_in_the_middle", false, "abc<left><cr>", submit, "abc"},
		{"incomplete", false, ":::a<cr>b", goOn, ":::a\nb"},
		{"complete", false, ":::a<cr>b:::<cr>", submit, ":::a\nb:::"},
		{"vi_normal", true, "abc<esc><cr>", submit, "abc"},
		{"ctrl_c", false, "abc<c-c>", interrupt, "abc"},
		{"vi_ctrl_c", true, "abc<esc><c-c>", interrupt, "abc"},
		{"ctrl_c_in_search", false, "<c-r>git<c-c>", interrupt, "git log"},
		{"enter_in_search", false, "<c-r>stat<cr>", submit, "git status"},
		{"ctrl_d", false, "<c-d>", end, ""},
		{"ctrl_d_with_text", false, "a<c-d>", goOn, "a"},
		{"vi_ctrl_d", true, "<esc><c-d>", end, ""},
		{"editor", false, "abc<c-o>", edit, "abc"},
		{"vi_editor", true, "abc<esc><c-o>", edit, "abc"},
		{"clear", false, "abc<c-l>", clear, "abc"},
		{"vi_suspend", true, "abc<c-z>", suspend, "abc"},
		{"vi_normal_suspend", true, "abc<esc><c-z>", suspend, "abc"},
		{"pasted_lines_do_not_submit", false, "<paste>a\rb\r</paste>", goOn, "a\nb\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTypist(Options{Vi: tt.vi, Incomplete: incomplete}, "")
			if got := p.types(tt.keys); got != tt.want || p.m.buf.text != tt.text {
				t.Errorf("got %v, %q, want %v, %q", got, p.m.buf.text, tt.want, tt.text)
			}
		})
	}
}

func dotCommands(text string) (c Completion) {
	for _, w := range []string{".exit", ".exit role", ".exit session", ".model", ".role"} {
		if strings.HasPrefix(w, strings.ToLower(text)) && text != "" {
			c.Candidates = append(c.Candidates, Candidate{Value: w, Space: true})
		}
	}
	return c
}

func TestMenu(t *testing.T) {
	for _, tt := range []struct {
		name, keys, want string
		open             bool
	}{
		{"single_is_inserted", ".m<tab>", ".model |", false},
		{"nothing", "x<tab>", "x|", false},
		{"opens_with_the_common_prefix", ".e<tab>", ".exit|", true},
		{"other_case", ".E<tab>", ".exit|", true},
		{"enter_takes_the_first", ".e<tab><cr>", ".exit |", false},
		{"tab_goes_on", ".e<tab><tab><cr>", ".exit role |", false},
		{"shift_tab_goes_back", ".e<tab><s-tab><cr>", ".exit session |", false},
		{"arrows", ".e<tab><down><down><up><cr>", ".exit role |", false},
		{"around", ".e<tab><tab><tab><tab><cr>", ".exit |", false},
		{"typing_filters", ".<tab>r", ".r|", true},
		{"typing_filters_and_enter", ".<tab>r<cr>", ".role |", false},
		{"typing_closes", ".e<tab>x", ".exitx|", false},
		{"esc_closes", ".e<tab><esc>", ".exit|", false},
		{"moving_closes", ".e<tab><home>", "|.exit", false},
		{"before_other_text", ".m hello<home><right><right><tab>", ".model |hello", false},
		{"undo", ".m<tab><c-z>", ".m|", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTypist(Options{Complete: dotCommands}, "")
			p.m.width = 10 // one column
			p.types(tt.keys)
			if got := p.shows(); got != tt.want || (p.m.menu != nil) != tt.open {
				t.Errorf("got %q, open: %t", got, p.m.menu != nil)
			}
		})
	}
}

// TestDescription keeps the columns of one line, and makes one line of several.
func TestDescription(t *testing.T) {
	for in, want := range map[string]string{
		"    8192 /     1024": "    8192 /     1024", "one\n  two\tthree": "one two three", "\x1b[31mred\x1b[0m  end": "red  end",
	} {
		if got := description(in, 100); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestMenuGrid walks through a menu of several columns.
func TestMenuGrid(t *testing.T) {
	complete := func(string) (c Completion) {
		for _, w := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			c.Candidates = append(c.Candidates, Candidate{Value: w})
		}
		return c
	}
	for keys, want := range map[string]string{
		"<right>": "b", "<down>": "d", "<down><down>": "g", "<down><down><down>": "b", "<left>": "g", "<right><right><up>": "e",
		"<right><up>": "g", "<up>": "f", "<down><right>": "e",
	} {
		p := newTypist(Options{Complete: complete}, "")
		p.m.width = 8 // three columns
		p.types("<tab>" + keys + "<cr>")
		if got := p.m.buf.text; got != want {
			t.Errorf("%s: got %q, want %q", keys, got, want)
		}
	}
}

// TestWildCompletion offers what does not fit the text.
func TestWildCompletion(t *testing.T) {
	for _, from := range []int{-1, 1, 2, 100} {
		p := newTypist(Options{Complete: func(string) Completion {
			return Completion{From: from, Candidates: []Candidate{{Value: "x\x1b[2J\xff"}}}
		}}, "é")
		p.types("<tab>")
		if want := map[bool]string{true: "éx[2J|", false: "é|"}[from == 2]; p.shows() != want {
			t.Errorf("from %d: got %q", from, p.shows())
		}
	}
}

// FuzzModel checks after each key that the text is sound and that it can be drawn.
func FuzzModel(f *testing.F) {
	f.Add([]byte("héllo\x1b[1;5D\x0b\x19\x12git\r"), false)
	f.Add([]byte("one two\x1b0d2wp..u3~yyP\x1bciwx"), true)
	f.Add([]byte("\x1b[200~a\r\nb\tc\x1b[201~\x1b[A\x1b[1;2A\x17\x1a\x07.e\t\t\x1b[Z\r"), false)
	f.Add([]byte("👨‍👩‍👧e\u0301\x7f\x7f\x14世\u200d"), true)
	f.Fuzz(func(t *testing.T, in []byte, vi bool) {
		o := Options{Vi: vi, Complete: dotCommands, Incomplete: func(s string) bool { return strings.HasPrefix(s, ":::") }}
		m := newModel(&o, earlier, "")
		v := view{prompt: Prompt{Left: "\x1b[31mm)>\x1b[0m ", Right: "12"}, width: 4 + len(in)%40, height: 1 + len(in)%10}
		m.width = v.width
		var keys decoder
		var s screen
		s.width, s.height = v.width, v.height
		keys.add(in)
		for {
			k, ok := keys.next(false)
			if !ok {
				if k, ok = keys.next(true); !ok {
					return
				}
			}
			m.press(k)
			b := &m.buf
			if !utf8.ValidString(b.text) || b.cursor < 0 || b.cursor > len(b.text) || b.border(b.cursor) != b.cursor || b.anchor > len(b.text) {
				t.Fatalf("after %+v: cursor %d, anchor %d in %q", k, b.cursor, b.anchor, b.text)
			}
			if len(b.text) > 1<<16 {
				return
			}
			fr := v.frame(m)
			if len(fr.rows) > v.height || fr.row < 0 || fr.row >= len(fr.rows) || fr.column < 0 || fr.column >= v.width {
				t.Fatalf("after %+v: %d rows, cursor at %d, %d, of %d by %d", k, len(fr.rows), fr.row, fr.column, v.width, v.height)
			}
			s.draw(fr)
			s.out = s.out[:0]
		}
	})
}

// TestLongPaste lays out a text of so many lines that work for each pair of them would not end.
func TestLongPaste(t *testing.T) {
	t.Parallel()
	const lines = 100_000
	p := newTypist(Options{}, "")
	pasted := pasteBegin + strings.Repeat("line of paste text\r", lines) + pasteEnd
	for chunk := range slices.Chunk([]byte(pasted), 4096) {
		p.keys.add(chunk)
		for k, ok := p.keys.next(false); ok; k, ok = p.keys.next(false) {
			p.m.press(k)
		}
	}
	v := view{prompt: Prompt{Left: "> "}, width: 80, height: 24}
	if f := v.frame(p.m); len(f.rows) != 24 || f.row != 23 || f.column != len(continuation) || v.top != lines-23 {
		t.Errorf("%d rows from %d, the cursor in row %d, column %d", len(f.rows), v.top, f.row, f.column)
	}
	p.m.press(key{name: "ctrl+home"})
	if f := v.frame(p.m); f.row != 0 || f.column != 2 || v.top != 0 {
		t.Errorf("from %d, the cursor in row %d, column %d", v.top, f.row, f.column)
	}
}

// TestShiftTab: with a menu it goes back, without one it asks for another prompt, with both bindings of keys.
func TestShiftTab(t *testing.T) {
	t.Parallel()
	for _, vi := range []bool{false, true} {
		o := &Options{Vi: vi, Complete: func(string) Completion { return Completion{Candidates: []Candidate{{Value: "a"}, {Value: "b"}}} }}
		p := typist{m: newModel(o, nil, "")}
		if got := p.types("x<s-tab>"); got != cycle {
			t.Errorf("vi %v: %d without a menu", vi, got)
		}
		if got := p.types("<tab><s-tab>"); got != goOn || p.m.menu == nil {
			t.Errorf("vi %v: %d with a menu", vi, got)
		}
		if p.m.menu = nil; vi {
			if got := p.types("<esc><s-tab>"); got != cycle {
				t.Errorf("%d in normal mode", got)
			}
		}
	}
}
