package runtest

import (
	"slices"
	"sync"

	"loki/internal/base/fault"
	"loki/internal/service/auth"
	"loki/internal/workflow/run"
)

func (s *suite) owners() {
	ada, bob := auth.Owner{Subject: "ada", KeyID: "a1"}, auth.Owner{Subject: "bob", KeyID: "b1"}
	ids := make(map[string]string) // by whose they are
	for name, owner := range map[string]*auth.Owner{"ada": &ada, "bob": &bob, "": nil} {
		info := sample()
		info.Owner = owner
		j := s.beginWith(info, run.Checkpoint{State: state(), Position: run.Position{Frontier: []string{"a"}}})
		ids[name] = j.ID()
		s.ok(j.Close())
	}
	s.reopen()
	lists := func(view *auth.View, names ...string) {
		s.Helper()
		infos, err := s.store.Runs(s.Context(), run.Query{View: view})
		s.ok(err)
		var got, want []string
		for _, i := range infos {
			got = append(got, i.ID)
		}
		for _, name := range names {
			want = append(want, ids[name])
		}
		slices.Sort(got)
		slices.Sort(want)
		s.same("list", got, want)
	}
	lists(nil, "ada", "bob", "")
	lists(&auth.View{Subject: "ada"}, "ada")
	lists(&auth.View{Subject: "ada", Unowned: true}, "ada", "")
	lists(&auth.View{Subject: "Ada"})
	lists(&auth.View{Subject: ""})
	lists(&auth.View{Subject: "ada' OR '1'='1"})

	got, err := s.store.Claim(s.Context(), ids["ada"], bob)
	s.ok(err)
	s.same("owner of a run that has one", got, &ada)

	// Of many who claim a run, one owns it.
	var wg sync.WaitGroup
	owners := make([]*auth.Owner, 8) // goroutine i writes owners[i] only
	for i := range owners {
		wg.Go(func() {
			var err error
			owners[i], err = s.store.Claim(s.Context(), ids[""], []auth.Owner{ada, bob}[i%2])
			if err != nil {
				s.Error(err)
			}
		})
	}
	wg.Wait()
	s.reopen()
	for _, o := range owners {
		s.same("owner", o, s.info(ids[""]).Owner)
		s.same("owner in history", o, s.history(ids[""]).Info.Owner)
	}

	_, err = s.store.Claim(s.Context(), "zzzzzzzz", bob)
	s.code("claim of an unknown run", err, fault.NotFound)

	// What is done with a run leaves its owner.
	j, found, err := s.store.Open(s.Context(), ids["bob"])
	s.ok(err)
	s.same("owner of a run that goes on", found.Info.Owner, &bob)
	s.ok(j.End(s.Context(), run.Ending{Status: run.Done}))
	s.ok(j.Close())
	s.same("owner of a run that is done", s.info(ids["bob"]).Owner, &bob)
}
