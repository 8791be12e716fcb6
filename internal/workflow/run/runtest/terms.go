package runtest

import "loki/internal/workflow/run"

// terms replaces what a client asked for when it began a run. All else that describes the run stays.
func (s *suite) terms() {
	j := s.begin()
	s.ok(j.Close())
	before, err := s.store.Info(s.Context(), j.ID())
	s.ok(err)
	s.reopen()
	j, found, err := s.store.Open(s.Context(), j.ID())
	s.ok(err)
	terms := *found.Info.Terms
	terms.Budget.Tokens = 18_000
	found.Info.Terms = &terms
	s.ok(j.SetTerms(s.Context(), found.Info))
	s.ok(j.Close())
	s.reopen()
	after, err := s.store.Info(s.Context(), j.ID())
	s.ok(err)
	s.same("terms", after.Terms, &terms)
	before.Terms, after.Terms, after.Updated = nil, nil, before.Updated
	s.same("the rest", after, before)
	if err := j.SetTerms(s.Context(), run.Info{}); err == nil {
		s.Error("a journal that is closed writes")
	}
}
