package rag

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"loki/internal/base/fault"
	"loki/internal/base/fault/retry"
	"loki/internal/base/value"
	"loki/internal/llm/chat"
	"loki/internal/llm/engine"
)

// Question is a question of an evaluation, with the sources that hold its answer: "path", or
// "path:12-40" for lines of it. A path may be the end of a longer one, from a separator on.
type Question struct {
	Question string   `json:"question"`
	Sources  []string `json:"sources"`
}

// formHint shows what a line of a file of questions looks like.
const formHint = `write one object a line, such as {"question": "How do I install it?", "sources": ["docs/setup.md:12-40"]}`

// ReadQuestions reads questions, one JSON object a line; blank lines and unknown members do not
// count. file is the name for messages. The error has code Usage and names the line.
func ReadQuestions(file string, data []byte) ([]Question, error) {
	var list []Question
	number := 0
	for line := range bytes.Lines(data) {
		number++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var q Question
		err := json.Unmarshal(line, &q)
		switch {
		case err != nil:
		case strings.TrimSpace(q.Question) == "":
			err = errors.New("question is missing")
		case len(q.Sources) == 0 || slices.Contains(q.Sources, ""):
			err = errors.New("sources is missing or holds an empty text")
		}
		if err != nil {
			return nil, fault.Wrap(fault.Usage, err, "%s:%d", file, number).
				WithHint(formHint)
		}
		list = append(list, q)
	}
	if len(list) == 0 {
		return nil, fault.New(fault.Usage, "%s holds no questions", file).WithHint(formHint)
	}
	return list, nil
}

// EvalOptions say what [Evaluate] compares.
type EvalOptions struct {
	Variants []Variant        // none means the settings of the base
	Modes    []Mode           // none means all
	K        int              // passages that count; 0 means top_k of each variant
	Budget   engine.Budget    // nil bounds nothing
	Retry    retry.Policy     // of requests to models
	Now      func() time.Time // nil means time.Now
}

// Variant is a way to search.
type Variant struct {
	Name     string // as the user wrote it, such as "top_k=8"
	Settings Settings
}

// Evaluation is how well the sources of answers are found.
type Evaluation struct {
	Base      string     `json:"base"`
	Questions int        `json:"questions"`
	Unknown   []string   `json:"unknown_sources,omitempty"` // that no document of the base is
	Scores    []Score    `json:"scores"`                    // by variant, then mode
	Usage     chat.Usage `json:"usage"`
}

// Score is how well one way to search finds the sources, as means over all questions.
type Score struct {
	Settings string  `json:"settings,omitempty"` // name of the variant
	Mode     string  `json:"mode"`               // "keyword", "vector" or "both"
	K        int     `json:"k"`
	Recall   float64 `json:"recall"` // part of the sources that the first K passages are from
	MRR      float64 `json:"mrr"`    // 1 / rank of the first passage from a source, 0 without one
	NDCG     float64 `json:"ndcg"`   // normalized discounted cumulative gain

	Missed []Miss `json:"missed,omitempty"` // questions of which not all sources are among the first K passages

	P50 time.Duration `json:"-"` // median time of a search
	P99 time.Duration `json:"-"`
}

// Miss is a question that was not, or not completely, answered by the passages that were found.
type Miss struct {
	Question string   `json:"question"`
	Sources  []string `json:"sources"`         // the ones that were not found
	First    string   `json:"first,omitempty"` // where the first passage is from
}

// MarshalJSON adds the times in seconds.
func (s Score) MarshalJSON() ([]byte, error) {
	type plain Score
	return value.Marshal(struct {
		plain
		P50 float64 `json:"p50_seconds"`
		P99 float64 `json:"p99_seconds"`
	}{plain(s), s.P50.Seconds(), s.P99.Seconds()})
}

// Evaluate searches for each question in each way, one after the other, and scores what is found. A
// variant that needs another index is an error with code Usage.
func Evaluate(ctx context.Context, b *Base, questions []Question, o EvalOptions) (Evaluation, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if len(o.Variants) == 0 {
		o.Variants = []Variant{{Settings: b.Settings()}}
	}
	if len(o.Modes) == 0 {
		o.Modes = []Mode{Keyword, Vector, Both}
	}
	e := Evaluation{Base: b.Name(), Questions: len(questions)}
	var err error
	if e.Unknown, err = unmatchedSources(ctx, b.Index(), questions); err != nil {
		return Evaluation{}, err
	}
	for _, v := range o.Variants {
		if !v.Settings.SameChunks(b.Settings()) {
			return Evaluation{}, fault.New(fault.Usage, "%s concerns the index of %s, not searches", v.Name, b.Name()).
				WithHint("build a second knowledge base with it and evaluate both")
		}
		v.Settings.TopK = cmp.Or(o.K, v.Settings.TopK)
		for _, mode := range o.Modes {
			score, used, err := evaluate(ctx, b, questions, v, mode, o)
			e.Usage = e.Usage.Add(used)
			if err != nil {
				return e, err
			}
			e.Scores = append(e.Scores, score)
		}
	}
	return e, nil
}

func evaluate(ctx context.Context, b *Base, questions []Question, v Variant, mode Mode, o EvalOptions) (Score, chat.Usage, error) {
	s := Score{Settings: v.Name, Mode: cmp.Or(string(mode), "both"), K: v.Settings.TopK}
	var used chat.Usage
	var times []time.Duration
	for _, q := range questions {
		begin := o.Now()
		found, err := b.Search(ctx, Query{Text: q.Question, Settings: &v.Settings, Mode: mode, Budget: o.Budget, Retry: o.Retry})
		times = append(times, o.Now().Sub(begin))
		used = used.Add(found.Usage)
		if err != nil {
			return Score{}, used, err
		}
		left, rr, ndcg := judge(found.Hits, q.Sources, s.K)
		if len(left) > 0 {
			miss := Miss{Question: q.Question, Sources: left}
			if len(found.Hits) > 0 {
				miss.First = found.Hits[0].Source()
			}
			s.Missed = append(s.Missed, miss)
		}
		n := float64(len(questions))
		s.Recall += (1 - float64(len(left))/float64(len(q.Sources))) / n
		s.MRR += rr / n
		s.NDCG += ndcg / n
	}
	s.P50, s.P99 = percentile(times, 50), percentile(times, 99)
	return s, used, nil
}

// judge scores hits, best first, by the sources that a question has.
//
// A passage is relevant if it is from a source that none before it is from, so that two passages of
// one source do not count twice. The gain of a relevant passage at rank r is 1/log2(r+1) (Järvelin
// and Kekäläinen, ACM TOIS 2002). It is normalized by the gain of the best list of k passages, of which
// there is one for each source. reciprocal is that of the rank of the first relevant passage. left
// are the sources that no passage is from.
func judge(hits []Hit, sources []string, k int) (left []string, reciprocal, ndcg float64) {
	left = slices.Clone(sources)
	for i, h := range hits {
		n := len(left)
		if left = slices.DeleteFunc(left, h.from); len(left) == n {
			continue
		}
		if reciprocal == 0 {
			reciprocal = 1 / float64(i+1)
		}
		ndcg += gain(i + 1)
	}
	best := 0.0
	for i := range min(len(sources), k) {
		best += gain(i + 1)
	}
	return left, reciprocal, ndcg / best
}

// unmatchedSources returns the sources of questions that are no document of the index, each once.
func unmatchedSources(ctx context.Context, index Index, questions []Question) ([]string, error) {
	var left []string
	for _, q := range questions {
		left = append(left, q.Sources...)
	}
	slices.Sort(left)
	left = slices.Compact(left)
	for f, err := range index.Files(ctx) {
		if err != nil {
			return nil, err
		}
		left = slices.DeleteFunc(left, Hit{Path: f.Path}.from)
	}
	return left, nil
}

// gain returns the gain of a relevant passage at a rank, from 1.
func gain(rank int) float64 { return 1 / math.Log2(float64(rank+1)) }

// from reports whether the passage is from a source of a [Question].
func (h Hit) from(source string) bool {
	path := filepath.ToSlash(h.Path)
	if endsIn(path, source) {
		return true
	}
	source, start, end := lines(source)
	return start > 0 && endsIn(path, source) && (h.Start == 0 || h.Start <= end && h.End >= start)
}

// endsIn reports whether end is path or, from a separator on, the end of it.
func endsIn(path, end string) bool {
	end = strings.TrimPrefix(filepath.ToSlash(end), "./")
	head, ok := strings.CutSuffix(path, end)
	return ok && end != "" && (head == "" || strings.HasSuffix(head, "/") || strings.HasPrefix(end, "/"))
}

// lines cuts the lines off "path:12-40" or "path:12". start is 0 if there are none.
func lines(source string) (path string, start, end int) {
	i := strings.LastIndexByte(source, ':')
	if i < 0 {
		return source, 0, 0
	}
	first, last, ranged := strings.Cut(source[i+1:], "-")
	if !ranged {
		last = first
	}
	start, err := strconv.Atoi(first)
	end, err2 := strconv.Atoi(last)
	if err != nil || err2 != nil || start < 1 || end < start {
		return source, 0, 0
	}
	return source[:i], start, end
}

// percentile returns the p-th percentile of times by nearest rank, 0 without times.
func percentile(times []time.Duration, p int) time.Duration {
	if len(times) == 0 {
		return 0
	}
	times = slices.Sorted(slices.Values(times))
	return times[(len(times)*p+99)/100-1]
}
