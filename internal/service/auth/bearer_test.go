package auth

import (
	"errors"
	"strings"
	"testing"
)

func TestBearer(t *testing.T) {
	for _, tt := range []struct {
		headers []string
		key     string
		err     error
	}{
		{nil, "", ErrNoKey},
		{[]string{"Bearer abc"}, "abc", nil},
		{[]string{"bearer  abc "}, "abc", nil},
		{[]string{""}, "", ErrMalformed},
		{[]string{"Bearer"}, "", ErrMalformed},
		{[]string{"Bearer "}, "", ErrMalformed},
		{[]string{"abc"}, "", ErrMalformed},
		{[]string{"Basic abc"}, "", ErrMalformed},
		{[]string{"Bearer a b"}, "", ErrMalformed},
		{[]string{"Bearer\tabc"}, "", ErrMalformed},
		{[]string{"Bearer ä"}, "", ErrMalformed},
		{[]string{"Bearer a\x00"}, "", ErrMalformed},
		{[]string{"Bearer abc", "Bearer abc"}, "", ErrMalformed},
		{[]string{"Bearer " + strings.Repeat("a", MaxBearer)}, strings.Repeat("a", MaxBearer), nil},
		{[]string{"Bearer " + strings.Repeat("a", MaxBearer+1)}, "", ErrMalformed},
	} {
		if key, err := Bearer(tt.headers); key != tt.key || !errors.Is(err, tt.err) {
			t.Errorf("%q: key %q, error %v", tt.headers, key, err)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, header := range []string{"Bearer abc", "bearer  abc ", "Bearer", "Basic abc", "Bearer a b", "Bearer\tabc", "Bearer ä", " Bearer a"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := Bearer([]string{header})
		if (err == nil) != (key != "") {
			t.Fatalf("key %q, error %v", key, err)
		}
		if err == nil && (len(key) > MaxBearer || strings.ContainsAny(key, " \t\r\n\x00") || !strings.Contains(header, key)) {
			t.Errorf("key %q", key)
		}
	})
}

func FuzzParseHash(f *testing.F) {
	f.Add(cheap("a").String())
	f.Add("$argon2id$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vt")
	f.Add("$argon2i$v=19$m=65536,t=3,p=4$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vt")
	f.Add("$argon2id$v=19$m=4294967295,t=4294967295,p=255$c2FsdHNhbHQ$c3Vtc3Vtc3Vtc3Vtc3Vt")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ParseHash(text)
		if err != nil {
			if len(text) > 40 && strings.Contains(err.Error(), text) {
				t.Error("the error shows the text")
			}
			return
		}
		if h.time > maxTime || h.memory > maxMemory || h.time < 1 || h.threads < 1 || len(h.sum) < 16 || len(h.salt) < 8 {
			t.Errorf("%q costs %+v", text, h)
		}
		if again, err := ParseHash(h.String()); err != nil || again.String() != h.String() {
			t.Errorf("%q is written as %q: %v", text, h, err)
		}
	})
}
