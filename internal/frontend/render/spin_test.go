package render_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/frontend/render"
)

// TestSpin: a spinner says what is done while it takes long, on a terminal only.
func TestSpin(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			s := render.NewScreen(render.ScreenOptions{Out: &out, Terminal: terminal, Size: func() (int, int) { return 80, 24 }})
			stop := s.Spin("Loading files")
			time.Sleep(time.Second)
			synctest.Wait()
			shown := strings.Contains(out.String(), "Loading files")
			stop()
			s.Close()
			if shown != terminal || !terminal && out.Len() > 0 {
				t.Errorf("terminal %t: %q", terminal, out.String())
			}
		})
	}
}
