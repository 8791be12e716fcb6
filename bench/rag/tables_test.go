package rag

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/knowledge/input"
	"loki/internal/knowledge/rag"
	"loki/internal/knowledge/rag/source"
	"loki/internal/knowledge/rag/sqlite"
	"loki/internal/llm/provider/builtin"
)

// TestCells asks 100 questions whose answer is one cell of a long table: nearly always the first passage has the row, and above
// it the names of the columns. -v logs the figures.
func TestCells(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	pick := func(words string) string { list := strings.Fields(words); return list[r.IntN(len(list))] }
	var staff, parts strings.Builder
	staff.WriteString("Number,Employee,City,Department,Salary,Start date\n")
	parts.WriteString("# Parts\n\n| Article | Part | Material | Size | Price | Stock |\n|---|---|---|---|---|---|\n")
	type question struct{ text, columns, row string }
	var questions []question
	known := make(map[string]bool)
	for n := range 800 {
		name := pick("Ada Bruno Carla Dario Elena Fabio Greta Hugo Iris Jonas Karin Leon Marta Nils Olga Paul Quinn Rosa Sven Tara Uwe Vera Xenia Yuri Zoe") +
			" " + pick("Adler Brandt Costa Dietz Egger Falk Gross Haas Iseli Jung Kern Lang Moser Nagel Ott Peters Roth Stein Thoma Ulrich Vogt Weber Zeller")
		article := fmt.Sprintf("%c%c-%d", 'A'+r.IntN(8), 'K'+r.IntN(8), 1000+r.IntN(9000))
		if known[name] || known[article] {
			continue
		}
		known[name], known[article] = true, true
		person := fmt.Sprintf("%d,%s,%s,%s,%d,%d-%02d-%02d", 1000+7*n, name, pick("Bern Basel Geneva Lugano Olten Chur Thun"), pick("Sales Legal Support Research Finance"), 48000+100*r.IntN(900), 1995+r.IntN(30), 1+r.IntN(12), 1+r.IntN(28))
		part := fmt.Sprintf("| %s | %s | %s | %d | %d.%02d | %d |", article, pick("bolt nut washer gasket bearing valve pump filter"), pick("steel brass copper rubber nylon zinc"), 2+r.IntN(90), r.IntN(90), r.IntN(100), r.IntN(5000))
		staff.WriteString(person + "\n")
		parts.WriteString(part + "\n")
		if n >= 100 && len(questions) < 100 {
			questions = append(questions,
				question{fmt.Sprintf(pick("What_is_the_salary_of_%s? In_which_city_does_%s_work? When_did_%s_start? Which_department_is_%s_in?"), name), "Number,Employee,City,Department,Salary,Start date", person},
				question{fmt.Sprintf(pick("What_is_the_price_of_article_%s? How_many_of_%s_are_in_stock? Which_material_is_%s_made_of?"), article), "| Article | Part | Material | Size | Price | Stock |", part})
		}
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"staff.csv": staff.String(), "parts.md": parts.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store := sqlite.New(filepath.Join(t.TempDir(), "rag.db"))
	b := rag.Builder{Models: hashing{}, Source: &source.Loader{Input: &input.Loader{}}}
	if _, err := b.Build(t.Context(), "tables", store, rag.Settings{EmbeddingModel: "builtin:hash", ChunkSize: 2000, ChunkOverlap: 100, TopK: 5, Documents: []string{dir}}); err != nil {
		t.Fatal(err)
	}
	base, err := rag.Open(t.Context(), "tables", store, hashing{})
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	for name, mode := range map[string]rag.Mode{"words": rag.Keyword, "both": rag.Both} {
		first, among := 0, 0
		for _, q := range questions {
			found, err := base.Search(t.Context(), rag.Query{Text: strings.ReplaceAll(q.text, "_", " "), Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			for i, h := range found.Hits {
				if columns, rows, ok := strings.Cut(h.Text, q.columns); ok && strings.Contains(rows, q.row) && !strings.Contains(columns, "\n\n\n") {
					among++
					if i == 0 {
						first++
					}
				}
			}
		}
		t.Logf("%s: %d of %d in the first passage, %d among five", name, first, len(questions), among)
		if first <= 98 || among < len(questions) {
			t.Errorf("%s: %d of %d in the first passage, %d among five", name, first, len(questions), among)
		}
	}
}

// hashing has the model builtin:hash.
type hashing struct{}

func (hashing) Embedder(context.Context, string) (rag.Embedder, error) {
	return rag.Embedder{ID: "builtin:hash", Name: "hash", Embedder: builtin.New(builtin.Options{}), MaxBatch: 64}, nil
}

func (hashing) Reranker(context.Context, string) (rag.Reranker, error) {
	return rag.Reranker{}, errors.New("there is no reranker")
}
