package rag_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/value"
	"loki/internal/knowledge/rag"
	"loki/internal/llm/provider"
)

func TestReadQuestions(t *testing.T) {
	list, err := rag.ReadQuestions("q.jsonl", []byte("{\"question\": \"a?\", \"sources\": [\"x.md\"], \"more\": 1}\r\n\n {\"question\":\"b?\",\"sources\":[\"y.md:1-2\",\"z\"]}"))
	if err != nil || len(list) != 2 || list[0].Question != "a?" || len(list[1].Sources) != 2 {
		t.Error(list, err)
	}
	const good = `{"question": "a?", "sources": ["x"]}` + "\n"
	for text, want := range map[string]string{
		good + "\n{":                          "q.jsonl:3: ",
		good + `{"question": 1}`:              "q.jsonl:2: ",
		good + `{"question": " "}`:            "q.jsonl:2: question is missing",
		`{"question": "a?"}`:                  "q.jsonl:1: sources is missing or holds an empty text",
		`{"question": "a?", "sources": [""]}`: "q.jsonl:1: sources is missing or holds an empty text",
		`[]`:                                  "q.jsonl:1: ",
		" \n":                                 "q.jsonl holds no questions",
		good + `{"question": "a", "sources": ""}`: "q.jsonl:2: ",
	} {
		if _, err := rag.ReadQuestions("q.jsonl", []byte(text)); fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadQuestions(f *testing.F) {
	f.Add([]byte(`{"question": "a?", "sources": ["x:1-2"]}` + "\n\n{"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := rag.ReadQuestions("q", data)
		if (len(list) == 0) != (err != nil) {
			t.Errorf("%v, %v", list, err)
		}
		for _, q := range list {
			if strings.TrimSpace(q.Question) == "" || len(q.Sources) == 0 {
				t.Errorf("%+v", q)
			}
		}
	})
}

// The first hits are chunks 1, 2 and 3, of lines 3-4, 5-6 and 7-8 of DIR/a.md.
func TestScores(t *testing.T) {
	second, third := 1/math.Log2(3), 1/math.Log2(4)
	for _, tt := range []struct {
		name              string
		sources           []string
		recall, mrr, ndcg float64
	}{
		{"path", []string{"a.md"}, 1, 1, 1},
		{"whole_path", []string{"DIR/a.md"}, 1, 1, 1},
		{"dot", []string{"./a.md"}, 1, 1, 1},
		{"part_of_a_name", []string{"md"}, 0, 0, 0},
		{"lines", []string{"a.md:5-6"}, 1, 0.5, second},
		{"lines_overlap", []string{"a.md:6-20"}, 1, 0.5, second},
		{"one_line", []string{"a.md:8"}, 1, 1. / 3, third},
		{"other_lines", []string{"a.md:9-20"}, 0, 0, 0},
		{"two", []string{"a.md:3", "a.md:7"}, 1, 1, (1 + third) / (1 + second)},
		{"half", []string{"a.md:3", "b.md"}, 0.5, 1, 1 / (1 + second)},
		{"twice_in_one", []string{"a.md:3", "a.md:4"}, 1, 1, 1 / (1 + second)},
		{"more_than_k", []string{"a.md:3", "a.md:5", "a.md:7", "x", "y"}, 0.6, 1, 1},
		{"not_lines", []string{"a.md:x-y"}, 0, 0, 0},
		{"backwards", []string{"a.md:6-5"}, 0, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, _, base := given(t, [][]rag.Match{matches(1, 2, 3)}, nil, nil)
			for i := range tt.sources {
				tt.sources[i] = strings.ReplaceAll(tt.sources[i], "DIR", b.dir)
			}
			e, err := rag.Evaluate(t.Context(), base, []rag.Question{{Question: "alpha", Sources: tt.sources}}, rag.EvalOptions{Modes: []rag.Mode{rag.Both}})
			if err != nil {
				t.Fatal(err)
			}
			s := e.Scores[0]
			if math.Abs(s.Recall-tt.recall)+math.Abs(s.MRR-tt.mrr)+math.Abs(s.NDCG-tt.ndcg) > 1e-9 || s.K != 3 || s.Mode != "both" {
				t.Errorf("%+v, want %v %v %v", s, tt.recall, tt.mrr, tt.ndcg)
			}
		})
	}
}

func TestEvaluate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, map[string]string{"a.md": "alpha one", "b.md": "beta two", "c.md": "gamma three"})
		b.build()
		var n int
		b.model.answer = func(ctx context.Context, _ provider.EmbedRequest) error {
			n++
			return retry.Sleep(ctx, time.Duration(n)*time.Second)
		}
		questions := []rag.Question{{Question: "alpha", Sources: []string{"a.md"}}, {Question: "two", Sources: []string{"b.md"}}, {Question: "zebra", Sources: []string{"c.md"}}}
		one, err := changed(t, b.set, b.Models, "top_k=1")
		if err != nil {
			t.Fatal(err)
		}
		e, err := rag.Evaluate(t.Context(), b.open(), questions, rag.EvalOptions{
			Variants: []rag.Variant{{"", b.set}, {"top_k=1", one}},
		})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range e.Scores {
			got = append(got, fmt.Sprintf("%q %s@%d %.2f %v %v", s.Settings, s.Mode, s.K, s.Recall, s.P50, s.P99))
		}
		equal(t, "scores", got, []string{
			`"" keyword@3 0.67 0s 0s`, `"" vector@3 0.67 2s 3s`, `"" both@3 0.67 5s 6s`,
			`"top_k=1" keyword@1 0.67 0s 0s`, `"top_k=1" vector@1 0.67 8s 9s`, `"top_k=1" both@1 0.67 11s 12s`,
		})
		if e.Questions != 3 || e.Base != "base" || e.Usage.InputTokens != 120 {
			t.Errorf("%+v", e)
		}
		data, err := value.Marshal(e.Scores[1])
		if err != nil || !strings.Contains(string(data), `"p50_seconds":2,"p99_seconds":3`) {
			t.Errorf("%s, %v", data, err)
		}
	})
}

func TestEvaluateNeedsTheIndex(t *testing.T) {
	b, _, base := given(t, [][]rag.Match{nil}, nil, nil)
	for _, pairs := range []string{"chunk_size=200"} {
		set, err := changed(t, b.set, b.Models, pairs)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rag.Evaluate(t.Context(), base, []rag.Question{{Question: "a", Sources: []string{"b"}}}, rag.EvalOptions{Variants: []rag.Variant{{pairs, set}}})
		if fault.CodeOf(err) != fault.Usage || !strings.HasPrefix(err.Error(), pairs+" concerns the index") {
			t.Error(err)
		}
	}
}
