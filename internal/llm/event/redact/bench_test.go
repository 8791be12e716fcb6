package redact_test

import (
	"strings"
	"testing"
)

func BenchmarkText(b *testing.B) {
	s := secrets("TOKEN", "tok-12345", "OTHER", "other-secret-value")
	for name, text := range map[string]string{
		"none":  strings.Repeat("some text without any of them. ", 32<<10),
		"every": strings.Repeat("tok-12345 ", 100<<10),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(text)
			}
		})
	}
}
