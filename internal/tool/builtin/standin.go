package builtin

import (
	"loki/internal/tool"
	"loki/internal/tool/permission"
)

// standIn is a script of the user that runs instead of a built-in tool.
type standIn struct {
	tool.FromFile
	native tool.Tool
}

var _ tool.StandIn = (*standIn)(nil)

// StandIn returns script as a tool that runs instead of native, which has the same name.
// A call needs the user's consent if it would with native, or if the script declares
// itself destructive. The user is also asked about a call that native would refuse,
// since the script may make it.
func StandIn(script tool.FromFile, native tool.Tool) tool.Tool { return &standIn{script, native} }

// questioner is a native tool with a question to the user before a call. The error says
// why the call would fail.
type questioner interface {
	question(call tool.Call) (string, error)
}

var (
	_ questioner = (*guardedTool)(nil)
	_ questioner = (*executeCommand)(nil)
)

// StandsInFor implements [tool.StandIn].
func (s *standIn) StandsInFor() tool.Hints {
	h := s.native.Hints()
	if s.Hints().Destructive {
		h.ReadOnly, h.Destructive = false, true
	}
	return h
}

// Host implements [tool.Reacher].
func (s *standIn) Host(call tool.Call) string {
	if native, ok := s.native.(*fetcher); ok {
		return native.hostOf(call) // what the program never fetches, the tool of the user may
	}
	return ""
}

// Opens implements [tool.Opener].
func (s *standIn) Opens(call tool.Call) ([]string, permission.Access) {
	if native, ok := s.native.(tool.Opener); ok {
		return native.Opens(call)
	}
	return nil, ""
}

// Consent implements [tool.Guard].
func (s *standIn) Consent(call tool.Call) string {
	question, err := "", error(nil)
	if native, ok := s.native.(questioner); ok {
		question, err = native.question(call)
	}
	if question == "" && (err != nil || s.Hints().Destructive) {
		return tool.PlainQuestion(call)
	}
	return question
}
