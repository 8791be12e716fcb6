// Package session measures what sessions cost: adding a turn to short and long ones,
// opening and listing them.
package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"loki/internal/conversation/session"
	"loki/internal/conversation/session/filestore"
	"loki/internal/llm/chat"
)

var answer = strings.Repeat("All work and no play makes Jack a dull boy. ", 20)

// turn is a question, a tool call with its result, and an answer: four messages.
func turn(i int) session.Turn {
	id := fmt.Sprint("call_", i)
	return session.Turn{
		Role: []chat.Message{chat.Text(chat.System, "Be brief.")},
		User: chat.Text(chat.User, fmt.Sprint("What about ", i, "?")),
		Reply: []chat.Message{
			{Role: chat.Assistant, ToolCalls: []chat.ToolCall{{ID: id, Name: "fs_cat", Arguments: `{"path":"a"}`}}},
			{Role: chat.ToolRole, ToolCallID: id, ToolName: "fs_cat", Parts: []chat.Part{{Type: chat.TextPart, Text: answer}}},
			chat.Text(chat.Assistant, answer),
		},
	}
}

func store(tb testing.TB, noSync bool) *filestore.Store {
	tb.Helper()
	st, err := filestore.New(filestore.Options{Dir: tb.TempDir(), NoSync: noSync})
	if err != nil {
		tb.Fatal(err)
	}
	return st
}

func begin(tb testing.TB, st *filestore.Store, turns int) *session.Session {
	tb.Helper()
	s := st.Temp("", session.Settings{Settings: chat.Settings{Model: "m"}})
	for i := range turns {
		if err := s.Append(context.Background(), turn(i)); err != nil { // in memory
			tb.Fatal(err)
		}
	}
	s.ForceSave()
	if err := s.Save(context.Background()); err != nil {
		tb.Fatal(err)
	}
	return s
}

// BenchmarkAppend adds a turn to sessions of different lengths. NoSync leaves the disk
// out, whose latency would hide everything else; see BenchmarkAppendToDisk.
func BenchmarkAppend(b *testing.B) {
	for _, messages := range []int{40, 4_000, 10_000} {
		b.Run(fmt.Sprint("messages=", messages), func(b *testing.B) {
			s := begin(b, store(b, true), messages/4)
			ctx := context.Background()
			t := turn(0)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Append(ctx, t); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAppendToDisk waits until the turn is on the disk, as the program does.
func BenchmarkAppendToDisk(b *testing.B) {
	s := begin(b, store(b, false), 10)
	for b.Loop() {
		if err := s.Append(context.Background(), turn(0)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn1000 holds a conversation of 1,010 turns, asking for the tokens after
// each as a prompt does, and reports how much longer turn 1,000 takes than turn 10:
// medians of the eleven turns around them, over all conversations.
func BenchmarkTurn1000(b *testing.B) {
	const reach = 5
	var early, late []time.Duration
	for b.Loop() {
		s := begin(b, store(b, true), 0)
		for i := 1; i <= 1000+reach; i++ {
			t := turn(i)
			start := time.Now()
			if err := s.Append(context.Background(), t); err != nil {
				b.Fatal(err)
			}
			if s.Tokens() == 0 {
				b.Fatal("no tokens")
			}
			took := time.Since(start)
			switch {
			case i >= 10-reach && i <= 10+reach:
				early = append(early, took)
			case i >= 1000-reach:
				late = append(late, took)
			}
		}
	}
	b.ReportMetric(float64(median(late))/float64(median(early)), "turn1000/turn10")
	b.ReportMetric(float64(median(late))/1e3, "us/turn1000")
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkOpen reads a session of 10,000 messages.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	open := func() *filestore.Store {
		st, err := filestore.New(filestore.Options{Dir: dir, NoSync: true})
		if err != nil {
			b.Fatal(err)
		}
		return st
	}
	id := begin(b, open(), 2500).ID()
	b.ReportAllocs()
	for b.Loop() {
		s, err := open().Open(context.Background(), "", id)
		if err != nil {
			b.Fatal(err)
		}
		if n := len(s.Messages()); n != 10_001 {
			b.Fatalf("%d messages", n)
		}
	}
}

// BenchmarkList lists 1,000 sessions.
func BenchmarkList(b *testing.B) {
	st := store(b, true)
	for i := range 1000 {
		if _, err := st.Create(context.Background(), "", session.Alias(fmt.Sprint("session ", i)), session.Settings{Settings: chat.Settings{Model: "m"}}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		list, err := st.List(context.Background(), "")
		if err != nil {
			b.Fatal(err)
		}
		if len(list) != 1000 {
			b.Fatalf("%d sessions", len(list))
		}
	}
}
