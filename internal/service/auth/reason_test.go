package auth

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

func TestReason(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{context.Canceled, ""},
		{errors.New("unknown"), ""},
		{ErrNoKey, ReasonMissing},
		{ErrMalformed, ReasonMalformed},
		{fmt.Errorf("refused: %w", ErrUnknown), ReasonUnknown},
		{fmt.Errorf("refused: %w", &TooManyError{After: time.Second}), ReasonRateLimited},
		{fmt.Errorf("refused: %w", &TokenError{Reason: ReasonExpired, Detail: "it expired"}), ReasonExpired},
	} {
		if got := Reason(tt.err); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
