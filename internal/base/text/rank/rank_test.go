package rank_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"loki/internal/base/text/rank"
)

func TestTokens(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"stems", "Searching for the searches", "search search"},
		{"snake", "search_issues", "search_issu search issu"},
		{"camel", "listPullRequests", "listpullrequest list pull request"},
		{"acronym", "getHTTPServer2", "gethttpserver2 get http server2"},
		{"server", "server:github", "server:github server github"},
		{"kebab", "read-file", "read file"},
		{"accents", "Café crème Straße", "cafe creme strass"},
		{"stop_words", "what is the it's you’re", ""},
		{"other_scripts", "поиск", "поиск"},
		{"han", "東京都 本 a漢字b", "東京 京都 本 漢字 b"},
		{"japanese", "検索エンジンを、がぎ", "検索 索エ エン ンジ ジン ンを がぎ"},
		{"halfwidth", "ｶﾞｲﾄﾞ", "ガイ イド"},
		{"korean", "한국어 server를", "한국 국어 server 를"},
		{"thai", "น้ำดี", "น้ํา าดี"},
		{"soft_hyphens", "Do\u00adnau\u00addampf\u00adschiff", "donaudampfschiff"},
		{"zero_width", "zero\u200bwidth word\u2060joiner \ufefffirst", "zerowidth wordjoin first"},
		{"punctuation", "... --- !!!", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(rank.Tokens(tt.text), " "); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStem(t *testing.T) {
	for word, want := range map[string]string{
		"consistently": "consist", "knightly": "knight", "generously": "generous", "communication": "communic",
		"skies": "sky", "dying": "die", "news": "news", "exceeding": "exceed", "hopping": "hop", "hoping": "hope",
		"ties": "tie", "cries": "cri", "gas": "gas", "kiwis": "kiwi", "by": "by", "say": "say", "enjoyment": "enjoy",
		"relational": "relat", "vietnamization": "vietnam", "geology": "geolog", "adoption": "adopt", "controll": "control",
		"dog's": "dog", "youth": "youth", "été": "été", "arsenal": "arsenal", "luxuriated": "luxuri", "agreed": "agre",
	} {
		if got := rank.Stem(word); got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

func TestSearch(t *testing.T) {
	docs := []string{
		"create_issue\nCreate a new issue in a repository",
		"search_issues\nFind issues and pull requests across repositories",
		"list_commits\nList commits of a branch",
		"delete_file\nDelete a file",
		"search_issues\nFind issues and pull requests across repositories",
	}
	x := rank.New(docs)
	for _, tt := range []struct {
		name, query string
		limit       int
		want        []int
	}{
		{"best_first_ties_in_order", "searching issues", 10, []int{1, 4, 0}},
		{"limit", "issues", 1, []int{0}},
		{"name_in_parts", "file", 5, []int{3}},
		{"nothing", "weather", 5, []int{}},
		{"stop_words_only", "the of a", 5, []int{}},
		{"zero", "issue", 0, []int{}},
		{"negative", "issue", -3, []int{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := x.Search(tt.query, tt.limit); !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := rank.New(nil).Search("x", 3); len(got) != 0 {
		t.Errorf("no documents: %v", got)
	}
}

func BenchmarkTokens(b *testing.B) {
	var texts []string
	size := 0
	err := filepath.WalkDir("../../..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		texts = append(texts, string(text))
		size += len(text)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(size))
	var list []string
	for b.Loop() {
		z := new(rank.Tokenizer)
		for _, text := range texts {
			list = z.Append(list[:0], text)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"search_issues", "HTTPServer", "é\xff_", "'s'", "y's", "Yyyy'", "don't", "ing", "ﬁle"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range rank.Tokens(text) {
			if strings.ContainsAny(token, " \n\t") {
				t.Errorf("token %q has a blank", token)
			}
		}
		x := rank.New([]string{text, "other"})
		_ = x.Search(text, 5)
	})
}

func BenchmarkSearch(b *testing.B) {
	verbs := strings.Fields("create list search delete update get fetch merge close open")
	r := rand.New(rand.NewPCG(1, 2))
	docs := make([]string, 10_000)
	for i := range docs {
		docs[i] = verbs[r.IntN(10)] + "_" + strconv.Itoa(i) + "\n" + verbs[r.IntN(10)] + " a thing of number " + strconv.Itoa(i)
	}
	x := rank.New(docs)
	for b.Loop() {
		x.Search("search things to merge", 8)
	}
}
