package run

import (
	"fmt"
	"slices"

	"loki/internal/base/ask"
)

// shownQuestion is a question as users see it, who answer it with what they see.
type shownQuestion struct {
	ask.Question
	asked ask.Question // with the secrets
}

// question returns a question without the secrets.
func (s *Secrets) question(q ask.Question) shownQuestion {
	shown := shownQuestion{q, q}
	if s == nil {
		return shown
	}
	shown.Text, shown.Default = s.Text(q.Text), s.Text(q.Default)
	shown.Options = slices.Clone(q.Options)
	for i, option := range q.Options {
		text := s.Text(option)
		for n := 2; text != option && slices.Contains(shown.Options[:i], text); n++ {
			text = fmt.Sprintf("%s (%d)", s.Text(option), n)
		}
		if shown.Options[i] = text; option == q.Default {
			shown.Default = text
		}
	}
	if q.Validate != nil {
		shown.Validate = func(answer string) error { return q.Validate(shown.meaning(answer)) }
	}
	return shown
}

// meaning returns the answer that a user means by one: a secret default or option for what was shown of it.
func (q shownQuestion) meaning(answer string) string {
	if slices.Equal(q.Options, q.asked.Options) && q.Default == q.asked.Default {
		return answer
	}
	if list, err := ask.SplitAnswers(answer); q.Kind == ask.Multi && err == nil {
		for i, a := range list {
			list[i] = q.option(a)
		}
		return ask.JoinAnswers(list)
	}
	return q.option(answer)
}

func (q shownQuestion) option(answer string) string {
	if i := slices.Index(q.Options, answer); i >= 0 {
		return q.asked.Options[i]
	}
	if q.HasDefault && answer == q.Default {
		return q.asked.Default
	}
	return answer
}
