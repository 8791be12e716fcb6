// Command documents compares what readers of documents find in real files.
//
//	go run ./bench/documents [-readers NAME=COMMAND,...] [-only PATTERN] [-below SHARE] [-damage N] DIR
//
// DIR is what fetch.sh has made. The judge of a document is the text that its maker put in, NAME.txt, or else what
// pdftotext, pandoc and LibreOffice find, as far as they are installed; a document without a judge is left out. Where there are
// several, words that all of them have should be found, and words that none of them has are invented. Of a text only the words count, after NFKC, in lower case, without soft hyphens and our numbers of slides and with words that were divided at the end of a line
// joined; each character of Chinese and Japanese is a word. The columns are
//
//	found     the judge's words that the reader has as well, in percent
//	invented  words of the reader that the judge does not have, in percent of the judge's
//	order     pairs of adjacent words of the judge that are adjacent in the reader's text, in percent
//	cpu, max  CPU time of all documents, and of the slowest, in seconds
//	memory    the largest memory of a process, in MB
//	failed    documents with words for which the reader ended with an error
//
// Each document is read by a process of its own. With -damage N, readers get N damaged copies instead, and the table
// counts the processes that crashed, and those that took more than 2 s of CPU time or 200 MB.
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"loki/internal/base/document"
)

func main() {
	readers := flag.String("readers", "", "further readers, NAME=COMMAND, separated by commas; the file is the last argument and the text is on stdout")
	only := flag.String("only", "*", "documents whose names match this pattern")
	below := flag.Float64("below", 0, "also list documents of which less than this share of the words was found, in percent, or as much as is left to 100 invented")
	damage := flag.Int("damage", 0, "read this many damaged copies instead")
	read := flag.String("read", "", "print the text of this document, as the comparison does in a process of its own")
	measure := flag.Bool("measure", false, "run the command that the arguments are and write what it used to descriptor 3")
	flag.Parse()
	var err error
	switch {
	case *measure:
		err = measured(flag.Args())
	case *read != "":
		err = printText(*read)
	case flag.NArg() != 1:
		err = fmt.Errorf("usage: documents [options] DIR, see -help")
	default:
		var all []reader
		if all, err = parseReaders(*readers); err == nil {
			b := bench{dir: flag.Arg(0), readers: all, below: *below}
			err = b.run(*only, *damage)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// kind returns the type of a document by its name.
func kind(file string) string { return strings.ToLower(strings.TrimPrefix(filepath.Ext(file), ".")) }

// destination matches where a link in Markdown leads, which no reader sees.
var destination = regexp.MustCompile(`\]\([^)\n]*\)`)

func printText(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	c, err := document.Text(context.Background(), kind(file), data)
	fmt.Print(slideNumber.ReplaceAllString(destination.ReplaceAllString(c.Text, "]"), "## "))
	return err
}

// slideNumber is what the reader writes in front of the title of a slide.
var slideNumber = regexp.MustCompile(`(?m)^## Slide \d+:?`)

// reader is a command that prints the text of the file that is its last argument.
type reader struct {
	name    string
	command []string
}

func parseReaders(list string) ([]reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	all := []reader{{"loki", []string{self, "-read"}}}
	for item := range strings.SplitSeq(list, ",") {
		name, command, ok := strings.Cut(item, "=")
		switch {
		case item == "":
		case !ok:
			return nil, fmt.Errorf("-readers: %q is not NAME=COMMAND", item)
		default:
			all = append(all, reader{name, strings.Fields(command)})
		}
	}
	return all, nil
}

type bench struct {
	dir     string
	readers []reader
	below   float64
}

func (b *bench) run(only string, damage int) error {
	files, err := filepath.Glob(filepath.Join(b.dir, "files", only))
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f string) bool { return !document.Reads(kind(f)) })
	if len(files) == 0 {
		return fmt.Errorf("no documents in %s", filepath.Join(b.dir, "files"))
	}
	if damage > 0 {
		return b.damaged(files, damage)
	}
	return b.compare(files)
}

// result is what a process of a reader left.
type result struct {
	text    string
	cpu     time.Duration
	memory  int64 // bytes
	failed  bool
	crashed bool
	message string
}

func (r reader) read(file string) result {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	self, err := os.Executable()
	if err != nil {
		return result{failed: true, message: err.Error()}
	}
	used, write, err := os.Pipe()
	if err != nil {
		return result{failed: true, message: err.Error()}
	}
	defer used.Close()
	cmd := exec.CommandContext(ctx, self, slices.Concat([]string{"-measure"}, r.command, []string{file})...)
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = &out, &problem, []*os.File{write}
	err = cmd.Run()
	write.Close()
	res := result{text: out.String(), failed: err != nil, message: strings.TrimSpace(problem.String())}
	var code int
	if _, err := fmt.Fscan(used, &code, &res.cpu, &res.memory); err != nil {
		code = -1
	}
	res.failed, res.crashed = code != 0, code < 0 || code > 1 // Go's panics end with 2
	return res
}

// measured runs a command and writes its exit status, CPU time and memory to descriptor 3. Linux counts the memory of
// the process that starts another one as its memory, so that has to be a small one.
func measured(command []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	_ = cmd.Run()
	s := cmd.ProcessState
	if s == nil {
		return fmt.Errorf("%s cannot be run", command[0])
	}
	_, err := fmt.Fprintln(os.NewFile(3, "used"), s.ExitCode(), int64(s.UserTime()+s.SystemTime()), memoryOf(s))
	return err
}

// score is what a reader found in the documents of a type.
type score struct {
	files, failed, words, found, invented, pairs, adjacent int
	cpu, slowest                                           time.Duration
	memory                                                 int64
}

func (s *score) add(judges [][]string, r result) (foundShare, inventedShare float64) {
	own := words(r.text)
	all, either := shared(judges)
	n, found, _ := common(all, own)
	_, _, invented := common(either, own)
	pairs, adjacent, _ := common(pairsOf(judges[0]), pairsOf(own))
	s.files++
	s.words, s.found, s.invented, s.pairs, s.adjacent = s.words+n, s.found+found, s.invented+invented, s.pairs+pairs, s.adjacent+adjacent
	if r.failed {
		s.failed++
	}
	s.cpu, s.slowest, s.memory = s.cpu+r.cpu, max(s.slowest, r.cpu), max(s.memory, r.memory)
	return percent(found, n), percent(invented, n)
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(max(1, all)) }

func (b *bench) compare(files []string) error {
	scores := make(map[string][]*score)
	for _, file := range files {
		var judges [][]string
		for _, text := range b.judge(file) {
			if judge := words(text); len(judge) > 0 {
				judges = append(judges, judge)
			}
		}
		if len(judges) == 0 {
			continue
		}
		for len(scores[kind(file)]) < len(b.readers) {
			scores[kind(file)] = append(scores[kind(file)], new(score))
		}
		for i, r := range b.readers {
			res := r.read(file)
			if found, invented := scores[kind(file)][i].add(judges, res); found < b.below || invented > 100-b.below && b.below > 0 {
				fmt.Printf("%s\t%s\t%.1f %% of %d words, %.1f %% invented\t%s\n", r.name, filepath.Base(file), found, len(judges[0]), invented, res.message)
			}
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "type\treader\tdocuments\twords\tfound %\tinvented %\torder %\tcpu s\tmax s\tmemory MB\tfailed\t")
	for _, k := range slices.Sorted(keys(scores)) {
		for i, s := range scores[k] {
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%.2f\t%.2f\t%.2f\t%.1f\t%.2f\t%d\t%d\t\n", k, b.readers[i].name, s.files, s.words,
				percent(s.found, s.words), percent(s.invented, s.words), percent(s.adjacent, s.pairs), s.cpu.Seconds(), s.slowest.Seconds(), s.memory>>20, s.failed)
		}
	}
	return w.Flush()
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// judge returns the texts that a document has according to its maker or other programs; they are kept for the next time.
func (b *bench) judge(file string) (texts []string) {
	if text, err := os.ReadFile(file + ".txt"); err == nil {
		return []string{string(text)}
	}
	var judges []string
	switch kind(file) {
	case "pdf":
		judges = []string{"pdftotext"}
	case "docx", "odt", "rtf":
		judges = []string{"pandoc", "soffice"}
	case "epub", "html", "htm":
		judges = []string{"pandoc"}
	case "pptx", "pptm", "odp":
		judges = []string{"soffice", "notes"} // the second has the slides once more above the notes
	default:
		judges = []string{"soffice"}
	}
	for _, name := range judges {
		kept := filepath.Join(b.dir, "judged", filepath.Base(file)+"."+name+".txt")
		text, err := os.ReadFile(kept)
		if err != nil {
			if text, err = ask(name, file); err != nil {
				continue
			}
			if os.MkdirAll(filepath.Dir(kept), 0o755) == nil {
				_ = os.WriteFile(kept, text, 0o644)
			}
		}
		texts = append(texts, string(text))
	}
	return texts
}

// ask has a program find the text of a document.
func ask(name, file string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	switch name {
	case "pdftotext":
		return exec.CommandContext(ctx, name, "-enc", "UTF-8", file, "-").Output()
	case "pandoc":
		return exec.CommandContext(ctx, name, "--to=plain", "--wrap=none", "--track-changes=accept", file).Output()
	}
	temp, err := os.MkdirTemp("", "judge-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp)
	to := "txt:Text (encoded):UTF8"
	switch kind(file) {
	case "xlsx", "xlsm", "ods":
		to = "csv:Text - txt - csv (StarCalc):44,34,76,1,,1033,false,true,true,false,false,-1" // all sheets, cells as shown
	case "pptx", "pptm", "odp":
		to = fmt.Sprintf("pdf:impress_pdf_Export:{\"ExportNotesPages\":{\"type\":\"boolean\",\"value\":\"%t\"}}", name == "notes")
	}
	if out, err := exec.CommandContext(ctx, "soffice", "--headless", "--convert-to", to, "--outdir", temp, file).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	made, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil || len(made) == 0 {
		return nil, fmt.Errorf("soffice made nothing of %s", file)
	}
	var all []byte
	for _, one := range made {
		text, err := os.ReadFile(one)
		if strings.HasSuffix(one, ".pdf") {
			text, err = exec.CommandContext(ctx, "pdftotext", "-enc", "UTF-8", one, "-").Output()
		} else if sheet, ok := strings.CutPrefix(filepath.Base(one), strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))+"-"); ok {
			all = append(all, strings.TrimSuffix(sheet, ".csv")+"\n"...) // the name of the sheet
		}
		if err != nil {
			return nil, err
		}
		all = append(append(all, text...), '\n')
	}
	return all, nil
}

// shared returns the words that all judges have, and those that one of them has at least.
func shared(judges [][]string) (all, either []string) {
	all, either = judges[0], judges[0]
	for _, more := range judges[1:] {
		left := make(map[string]int)
		for _, w := range more {
			left[w]++
		}
		has := maps.Clone(left)
		var both []string
		for _, w := range all {
			if has[w] > 0 {
				has[w]--
				both = append(both, w)
			}
		}
		for _, w := range either {
			left[w]--
		}
		union := slices.Clone(either)
		for w, n := range left {
			for range n {
				union = append(union, w)
			}
		}
		all, either = both, union
	}
	return all, either
}

// words returns the words of a text in their order.
func words(text string) []string {
	var all []string
	var word, divided []rune // divided is a word before a hyphen at the end of a line
	end := func() {
		if len(word) > 0 {
			all, word = append(all, string(word)), nil
		}
	}
	hyphen, lineEnd := false, false
	for _, r := range norm.NFKC.String(text) {
		switch {
		case unicode.Is(unicode.Cf, r):
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			all = append(all, string(r))
			divided = nil
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) && len(word) > 0:
			if divided != nil {
				if lineEnd && unicode.IsLower(r) {
					all, word = all[:len(all)-1], divided
				}
				divided = nil
			}
			word = append(word, unicode.ToLower(r)) // styles print capitals
		default:
			if (r == '-' || r == '\u2010') && len(word) > 0 {
				divided, lineEnd, hyphen = slices.Clone(word), false, true
			} else if hyphen && r == '\n' {
				lineEnd = true
			} else if !unicode.IsSpace(r) {
				divided, hyphen = nil, false
			}
			end()
		}
	}
	end()
	return all
}

func pairsOf(words []string) []string {
	var all []string
	for i := 1; i < len(words); i++ {
		all = append(all, words[i-1]+" "+words[i])
	}
	return all
}

// common counts what judge has, how much of that own has as well, and what only own has.
func common(judge, own []string) (n, found, invented int) {
	count := make(map[string]int)
	for _, w := range judge {
		count[w]++
	}
	for _, w := range own {
		if count[w] > 0 {
			count[w]--
			found++
		}
	}
	return len(judge), found, len(own) - found
}

// damaged has each reader read n damaged copies of documents.
func (b *bench) damaged(files []string, n int) error {
	files = slices.DeleteFunc(files, func(f string) bool {
		info, err := os.Stat(f)
		return err != nil || info.Size() > 2<<20
	})
	if len(files) == 0 {
		return fmt.Errorf("no document is small enough")
	}
	temp, err := os.MkdirTemp("", "documents-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	type count struct {
		crashed, slow, large int
		slowest              time.Duration
		memory               int64
	}
	counts := make([]count, len(b.readers))
	for i := range n {
		random := rand.New(rand.NewPCG(uint64(i), 1)) // the same files in every run
		from := files[random.IntN(len(files))]
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		file := filepath.Join(temp, fmt.Sprintf("%d.%s", i, kind(from)))
		if err := os.WriteFile(file, spoil(data, random), 0o644); err != nil {
			return err
		}
		for j, r := range b.readers {
			res, c := r.read(file), &counts[j]
			if res.crashed {
				c.crashed++
			}
			if res.cpu > 2*time.Second {
				c.slow++
			}
			if res.memory > 200<<20 {
				c.large++
			}
			if res.crashed || res.cpu > 2*time.Second || res.memory > 200<<20 {
				fmt.Printf("%s\t%d of %s\t%.2f s\t%d MB\t%.200s\n", r.name, i, filepath.Base(from), res.cpu.Seconds(), res.memory>>20, res.message)
			}
			c.slowest, c.memory = max(c.slowest, res.cpu), max(c.memory, res.memory)
		}
		os.Remove(file)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "reader\tdamaged\tcrashed\tover 2 s\tover 200 MB\tmax s\tmemory MB\t")
	for j, c := range counts {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.2f\t%d\t\n", b.readers[j].name, n, c.crashed, c.slow, c.large, c.slowest.Seconds(), c.memory>>20)
	}
	return w.Flush()
}

// spoil returns a damaged copy: bytes changed, parts doubled, moved or cut off, numbers enlarged. Of an archive one file in it
// is damaged, most often.
func spoil(data []byte, random *rand.Rand) []byte {
	if z, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err == nil && len(z.File) > 0 && random.IntN(5) > 0 {
		var out bytes.Buffer
		to, bad := zip.NewWriter(&out), random.IntN(len(z.File))
		for i, f := range z.File {
			r, err := f.Open()
			if err != nil {
				continue
			}
			text, _ := io.ReadAll(r)
			r.Close()
			if i == bad || random.IntN(4) == 0 {
				text = spoilBytes(text, random)
			}
			if w, err := to.Create(f.Name); err == nil {
				_, _ = w.Write(text)
			}
		}
		if to.Close() == nil {
			return out.Bytes()
		}
	}
	return spoilBytes(data, random)
}

func spoilBytes(data []byte, random *rand.Rand) []byte {
	data = slices.Clone(data)
	for range 1 + random.IntN(20) {
		if len(data) < 2 {
			break
		}
		at := random.IntN(len(data))
		size := min(random.IntN(512)+1, len(data)-at)
		switch random.IntN(8) {
		case 0, 1, 2:
			data[at] = byte(random.UintN(256))
		case 3:
			data = slices.Delete(data, at, at+size)
		case 4:
			data = slices.Insert(data, random.IntN(len(data)), slices.Clone(data[at:at+size])...)
		case 5:
			copy(data[random.IntN(len(data)):], data[at:at+size])
		case 6:
			if i := bytes.IndexAny(data[at:], "123456789"); i >= 0 {
				data = slices.Insert(data, at+i, []byte("99999")[:random.IntN(5)+1]...)
			}
		case 7:
			if random.IntN(10) == 0 {
				data = data[:at]
			}
		}
	}
	return data
}
