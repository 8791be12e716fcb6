package line

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// keysOf returns the keys of input, as [text], "pasted text" or name.
func keysOf(input ...string) []string {
	var d decoder
	var keys []string
	take := func(late bool) {
		for {
			k, ok := d.next(late)
			switch {
			case !ok:
				return
			case k.paste:
				keys = append(keys, "{"+k.text+"}")
			case k.text != "":
				keys = append(keys, "["+k.text+"]")
			default:
				keys = append(keys, k.name)
			}
		}
	}
	for _, part := range input {
		d.add([]byte(part))
		take(false)
	}
	take(true)
	return keys
}

func TestKeys(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"text", "héllo 世界", "[héllo 世界]"},
		{"emoji", "👨‍👩‍👧e\u0301", "[👨‍👩‍👧e\u0301]"},
		{"controls", "\x01\x05\x0a\x0d\x09\x7f\x08", "ctrl+a ctrl+e ctrl+j enter tab backspace ctrl+h"},
		{"control_symbols", "\x00\x1f", "ctrl+space ctrl+_"},
		{"escape", "\x1b", "esc"},
		{"arrows", "\x1b[A\x1b[B\x1b[C\x1b[D\x1bOA", "up down right left up"},
		{"with_modifiers", "\x1b[1;2C\x1b[1;5D\x1b[1;6C\x1b[1;3D\x1b[1;5H\x1b[1;5F", "shift+right ctrl+left ctrl+shift+right alt+left ctrl+home ctrl+end"},
		{"edge_keys", "\x1b[H\x1b[F\x1b[1~\x1b[4~\x1bOH\x1bOF\x1b[3~\x1b[3;5~", "home end home end home end delete ctrl+delete"},
		{"back_tab", "\x1b[Z", "shift+tab"},
		{"alt", "\x1bb\x1b\x7f\x1b\r\x1bB", "alt+b alt+backspace alt+enter alt+shift+b"},
		{"alt_utf8", "\x1bé", "alt+é"},
		{"alt_arrow", "\x1b\x1b[D", "alt+left"},
		{"escape_before_key", "\x1b\x1bx", "esc alt+x"},
		{"rxvt", "\x1bOc\x1b[3^\x1b[c", "ctrl+right ctrl+delete shift+right"},
		{"kitty", "\x1b[13;2u\x1b[13;5u\x1b[127;5u\x1b[97;5u\x1b[27u\x1b[97;6u", "shift+enter ctrl+enter ctrl+backspace ctrl+a esc ctrl+shift+a"},
		{"kitty_num_lock", "\x1b[99;133u", "ctrl+c"},
		{"kitty_cyrillic", "\x1b[1089::99;5u", "ctrl+c"},
		{"kitty_text", "\x1b[97u\x1b[97:65;2u", "[a] [A]"},
		{"kitty_release", "\x1b[97;5:3u", ""},
		{"modify_other_keys", "\x1b[27;5;13~\x1b[27;2;13~\x1b[27;5;127~", "ctrl+enter shift+enter ctrl+backspace"},
		{"linux_console", "\x1b[[Ax", "[x]"},
		{"paste", "a\x1b[200~x\r\ny\rz\x1b[31m\x00\tq\x1b[201~b", "[a] {x\ny\nz[31m\tq} [b]"},
		{"empty_paste", "\x1b[200~\x1b[201~", "{}"},
		{"answers", "\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;22c\x1b[24;80R\x1bP>|tmux 3.4\x1b\\x", "[x]"},
		{"mouse", "\x1b[<0;10;10Mx", "[x]"},
		{"broken_utf8", "a\xffb\xc3", "[a] [b]"},
		{"broken_sequence", "\x1b[12\x01x", "ctrl+a [x]"},
		{"c1", "a\u0085\u009bb", "[a] [b]"},
		{"endless_sequence", "\x1b[" + strings.Repeat("1", maxSequence) + "x", "[11x]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(keysOf(tt.in), " ")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			single := keysOf(strings.Split(tt.in, "")...)
			if joined := strings.ReplaceAll(strings.Join(single, " "), "] [", ""); joined != strings.ReplaceAll(got, "] [", "") {
				t.Errorf("byte by byte: got %q, want %q", joined, got)
			}
		})
	}
}

// TestAltBracket types Alt and a key that also begins sequences.
func TestAltBracket(t *testing.T) {
	for in, want := range map[string]string{"\x1b[": "alt+[", "\x1bO": "alt+shift+o", "\x1b]": "alt+]", "\x1bP": "alt+shift+p"} {
		if got := keysOf(in); len(got) != 1 || got[0] != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// FuzzKeys checks that what becomes text cannot control the terminal, and that it does not matter
// where the bytes are cut.
func FuzzKeys(f *testing.F) {
	f.Add([]byte("héllo\x1b[A\x1b[200~x\r\ny\x1b[201~\x1b]0;x\x07\x1b[1;5C"), uint64(1))
	f.Add([]byte("\x1b[12\x01\x1b\x1b\x1b[\xff\xc3\x28\x1bP1$r\x1b\\"), uint64(2))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 1))
		var whole, cut decoder
		collect := func(d *decoder, late bool) (all string) {
			for {
				k, ok := d.next(late)
				if !ok {
					return all
				}
				if (k.text == "") == (k.name == "") && !k.paste {
					t.Fatalf("neither text nor a name, or both: %+v", k)
				}
				for _, r := range k.text {
					if unicode.IsControl(r) && !(k.paste && (r == '\n' || r == '\t')) || !utf8.ValidString(k.text) {
						t.Fatalf("text %q", k.text)
					}
				}
				if k.name != "" {
					all += "<" + k.name + ">"
				}
				all += k.text
			}
		}
		whole.add(in)
		want := collect(&whole, false)
		rest := len(whole.buf) + len(whole.pasted)
		var got string
		for len(in) > 0 {
			n := 1 + random.IntN(len(in))
			cut.add(in[:n])
			got += collect(&cut, false)
			in = in[n:]
		}
		if got != want || len(cut.buf)+len(cut.pasted) != rest {
			t.Fatalf("in pieces %q, as a whole %q", got, want)
		}
		collect(&whole, true)
		if len(whole.buf) > 0 {
			t.Fatalf("%q is left", whole.buf)
		}
	})
}
