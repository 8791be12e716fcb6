package render

import "testing"

func TestDarkAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, in    string
		dark, known bool
	}{
		{"black", "\x1b]11;rgb:0000/0000/0000\x1b\\\x1b[?62;c", true, true},
		{"white_bel", "\x1b]11;rgb:ffff/ffff/ffff\x07\x1b[?1;2c", false, true},
		{"two_digits", "\x1b]11;rgb:1e/1f/26\x07", true, true},
		{"alpha", "\x1b]11;rgba:fafa/fafa/fafa/ffff\x07", false, true},
		{"typed_before", "ls\r\x1b]11;rgb:0/0/0\x07", true, true},
		{"none", "\x1b[?62;c", false, false},
		{"cut", "\x1b]11;rgb:ffff/ffff/ff", false, false},
		{"no_digits", "\x1b]11;rgb:zz/00/00\x07", false, false},
		{"too_many_digits", "\x1b]11;rgb:fffff/0/0\x07", false, false},
		{"two_parts", "\x1b]11;rgb:ff/ff\x07", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if dark, known := darkAnswer([]byte(tt.in)); dark != tt.dark || known != tt.known {
				t.Errorf("dark %v, known %v, want %v and %v", dark, known, tt.dark, tt.known)
			}
		})
	}
}

func TestDarkEnvironment(t *testing.T) {
	for value, want := range map[string][2]bool{
		"15;0": {true, true}, "0;15": {false, true}, "0;default;15": {false, true}, "12;8": {true, true}, "0;7": {false, true}, "": {}, "15;default": {}, "1;99": {},
	} {
		if dark, known := DarkEnvironment(func(string) string { return value }); dark != want[0] || known != want[1] {
			t.Errorf("%q: dark %v, known %v, want %v", value, dark, known, want)
		}
	}
}

func TestSplitAnswer(t *testing.T) {
	for _, tt := range []struct {
		name, in, answer, typed string
		complete                bool
	}{
		{"both", "\x1b]11;rgb:0/0/0\x1b\\\x1b[?62;22c", "\x1b]11;rgb:0/0/0\x1b\\\x1b[?62;22c", "", true},
		{"typed_around", "a\x1b]11;rgb:0/0/0\ab\x1b[?1;2cd\r", "\x1b]11;rgb:0/0/0\a\x1b[?1;2c", "abd\r", true},
		{"half", "\x1b]11;rgb:0/0", "\x1b]11;rgb:0/0", "", false},
		{"half_attributes", "\x1b[?62", "\x1b[?62", "", false},
		{"arrow_keys", "\x1b[A\x1bOB", "", "\x1b[A\x1bOB", false},
		{"none", "", "", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answer, typed, complete := splitAnswer([]byte(tt.in))
			if string(answer) != tt.answer || string(typed) != tt.typed || complete != tt.complete {
				t.Errorf("got %q, %q, %v, want %q, %q, %v", answer, typed, complete, tt.answer, tt.typed, tt.complete)
			}
		})
	}
}

func FuzzSplitAnswer(f *testing.F) {
	f.Add([]byte("a\x1b]11;rgb:0/0/0\x1b\\b\x1b[?62;22c"))
	f.Add([]byte("\x1b]11;\x1b[?"))
	f.Fuzz(func(t *testing.T, in []byte) {
		answer, typed, _ := splitAnswer(in)
		if len(answer)+len(typed) != len(in) {
			t.Errorf("%q became %q and %q", in, answer, typed)
		}
		darkAnswer(answer)
	})
}
