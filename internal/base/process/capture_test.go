package process

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"
)

func TestCapture(t *testing.T) {
	t.Parallel()
	text := bytes.Repeat([]byte("0123456789"), 500_000)
	for _, tt := range []struct {
		name      string
		size, max int
		over      bool
	}{
		{"nothing", 0, 10, false},
		{"small", 10, 100, false},
		{"exact", 100, 100, false},
		{"one_more", 101, 100, true},
		{"chunk", chunk, 1 << 20, false},
		{"chunk_and_one", chunk + 1, 1 << 20, false},
		{"many_chunks", 5_000_000, 5_000_000, false},
		{"many_chunks_cut", 5_000_000, 4_999_999, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen bytes.Buffer
			c := capture{max: int64(tt.max)}
			eachChunk(bytes.NewReader(text[:tt.size]), func(p []byte) bool {
				seen.Write(c.write(p))
				return !c.over
			})
			want := text[:min(tt.size, tt.max)]
			if !bytes.Equal(c.text, want) || !bytes.Equal(seen.Bytes(), want) || c.over != tt.over {
				t.Errorf("kept %d bytes, saw %d, over: %v", len(c.text), seen.Len(), c.over)
			}
		})
	}
}

func TestCaptureKeepsWhatCameBeforeAnError(t *testing.T) {
	t.Parallel()
	c := capture{max: 100}
	r := io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(errors.New("closed")))
	eachChunk(iotest.OneByteReader(r), func(p []byte) bool {
		c.write(p)
		return !c.over
	})
	if string(c.text) != "abc" || c.over {
		t.Errorf("got %q, over: %v", c.text, c.over)
	}
}

func TestEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		max     int64
		in      []string
		want    string
		omitted int64
	}{
		{"nothing", 10, nil, "", 0},
		{"short", 10, []string{"abc", "def"}, "abcdef", 0},
		{"exact", 6, []string{"abc", "def"}, "abcdef", 0},
		{"one_more", 6, []string{"abcdefg"}, "abc\n... 1 bytes omitted ...\nefg", 1},
		{"odd_limit", 5, []string{"abcdefgh"}, "abc\n... 3 bytes omitted ...\ngh", 3},
		{"one_byte", 1, []string{"ab", "cd"}, "a\n... 3 bytes omitted ...\n", 3},
		{"many_writes", 4, strings.Split("abcdefghijklmnopqrstuvwxyz", ""), "ab\n... 22 bytes omitted ...\nyz", 22},
		{"whole_runes", 4, []string{"aéxxxxxéa"}, "a\n... 9 bytes omitted ...\na", 9},
		{"invalid", 10, []string{"a\xff"}, "a\uFFFD", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := ends{max: tt.max}
			for _, s := range tt.in {
				e.write([]byte(s))
			}
			if got, omitted := e.text(); got != tt.want || omitted != tt.omitted {
				t.Errorf("got %q, omitted %d; want %q, %d", got, omitted, tt.want, tt.omitted)
			}
		})
	}
}

// FuzzEnds feeds text in pieces of step bytes.
func FuzzEnds(f *testing.F) {
	f.Add([]byte("hello world"), uint8(3), uint8(8))
	f.Add([]byte("\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), uint8(1), uint8(5))
	f.Add([]byte("\x80\x80\x80\x80\x80\x80\x80\x80"), uint8(2), uint8(4))
	f.Fuzz(func(t *testing.T, text []byte, step, limit uint8) {
		step, limit = max(step, 1), max(limit, 1)
		e := ends{max: int64(limit)}
		for rest := text; len(rest) > 0; {
			n := min(int(step), len(rest))
			e.write(rest[:n])
			rest = rest[n:]
		}
		got, omitted := e.text()
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if len(text) <= int(limit) {
			if got != strings.ToValidUTF8(string(text), "\uFFFD") || omitted != 0 {
				t.Fatalf("got %q of %q, omitted %d", got, text, omitted)
			}
			return
		}
		if omitted < int64(len(text)-int(limit)) || omitted > int64(len(text)-int(limit)+6) {
			t.Fatalf("%d of %d bytes omitted, limit %d", omitted, len(text), limit)
		}
		if cap(e.head)+cap(e.tail) > 8*int(limit)+64 {
			t.Fatalf("holds %d bytes for a limit of %d", cap(e.head)+cap(e.tail), limit)
		}
		if utf8.Valid(text) && (strings.ContainsRune(got, utf8.RuneError) != bytes.ContainsRune([]byte(got), utf8.RuneError) ||
			!bytes.ContainsRune(text, utf8.RuneError) && strings.ContainsRune(got, utf8.RuneError)) {
			t.Fatalf("the cut broke a rune of %q: %q", text, got)
		}
	})
}

func TestLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxLine)
	for _, tt := range []struct {
		name string
		in   []string
		want []string
	}{
		{"nothing", nil, nil},
		{"one", []string{"a\n"}, []string{"a"}},
		{"in_pieces", []string{"a", "b\nc", "", "\n"}, []string{"ab", "c"}},
		{"no_end", []string{"a\nb"}, []string{"a", "b"}},
		{"empty_lines", []string{"\n\n"}, []string{"", ""}},
		{"carriage_return", []string{"a\r\nb\rc\n"}, []string{"a", "b\rc"}},
		{"split_carriage_return", []string{"a\r", "\n"}, []string{"a"}},
		{"invalid", []string{"\xff\n"}, []string{"\uFFFD"}},
		{"rune_in_pieces", []string{"\xc3", "\xa9\n"}, []string{"é"}},
		{"longest", []string{long, "\n"}, []string{long}},
		{"too_long", []string{long + "y\nz"}, []string{long, "y", "z"}},
		{"too_long_in_a_rune", []string{long[1:] + "é\n"}, []string{long[1:], "é"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			l := lines{emit: func(line string) { got = append(got, line) }}
			for _, s := range tt.in {
				l.write([]byte(s))
			}
			l.end()
			if strings.Join(got, "|") != strings.Join(tt.want, "|") || len(got) != len(tt.want) {
				t.Errorf("got %d lines, %.200q", len(got), got)
			}
		})
	}
}

// FuzzLines cuts a text at two places; that must not show in the lines.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\nb\n\nc"), uint16(1), uint16(3))
	f.Add([]byte("\xc3\xa9\n\xff"), uint16(1), uint16(2))
	f.Add(bytes.Repeat([]byte("é"), maxLine), uint16(7), uint16(40000))
	f.Fuzz(func(t *testing.T, text []byte, i, j uint16) {
		cut := func(pieces ...[]byte) (got []string) {
			l := lines{emit: func(line string) { got = append(got, line) }}
			for _, p := range pieces {
				l.write(p)
			}
			l.end()
			return got
		}
		a := min(int(i), len(text))
		b := max(a, min(int(j), len(text)))
		whole, pieces := cut(text), cut(text[:a], text[a:b], text[b:])
		if strings.Join(whole, "\n") != strings.Join(pieces, "\n") || len(whole) != len(pieces) {
			t.Fatalf("whole %.300q, in pieces %.300q", whole, pieces)
		}
		for _, line := range whole {
			if !utf8.ValidString(line) || strings.Contains(line, "\n") || len(line) > 3*maxLine {
				t.Fatalf("odd line %.300q", line)
			}
		}
		if utf8.Valid(text) && !bytes.Contains(text, []byte{'\r'}) {
			joined := strings.Join(whole, "")
			if joined != strings.ReplaceAll(string(text), "\n", "") {
				t.Fatalf("%.300q became %.300q", text, joined)
			}
		}
	})
}
