// Package extract summarizes a text by choosing sentences from it.
//
// A text is cut into blocks (paragraphs, list items, headings), blocks into
// sentences, sentences into terms. Sentences are vectors of tf-idf weights, and two
// of them are as close as their cosine. The centrality of a sentence is its PageRank
// in the graph of these similarities: a sentence matters if it resembles sentences
// that matter. The summary is the central sentences, each unlike the ones chosen
// before it, in the order of the text.
//
// Nothing here is random, trained or remote: the same text and limits always give
// the same summary. The work grows with the number of terms in the text, not with
// the square of the number of its sentences, so no sentence is left out of
// consideration however long the text is.
//
// Sources: Erkan and Radev, LexRank, Journal of Artificial Intelligence Research 22,
// 2004; Mihalcea and Tarau, TextRank, EMNLP 2004; Carbonell and Goldstein, The Use of
// MMR, SIGIR 1998.
package extract

import (
	"strings"
	"unicode/utf8"
)

// DefaultSentences is the length of a summary for which no length is asked.
const DefaultSentences = 3

// paragraphSentences is the length of a summary of which a paragraph is asked.
const paragraphSentences = 5

// Limits is how long a summary may be and how it is laid out. The zero value asks
// for [DefaultSentences] sentences.
type Limits struct {
	Sentences int  // upper limit; 0 means DefaultSentences, or no limit if Words is set
	Words     int  // upper limit of all sentences together; 0 means none
	Bullets   bool // one line with a dash for each sentence
}

// Summarize returns the sentences of text that say most about it, in the order of
// the text. White space inside a sentence becomes single blanks and the Markdown
// marks at the start of a line are left out; otherwise each sentence is as in the text.
//
// Code blocks, tables, rules, HTML tags and front matter hold no sentences; headings
// count only in a text of nothing else. A text within the limits is returned
// whole. A longer one gives fewer sentences than allowed if the rest only repeats
// what is chosen already, and at least one: the shortest, if none is within
// limits.Words. The result is nil if the text has no sentence.
func Summarize(text string, limits Limits) []string {
	return summarize(sentencesOf(text), limits)
}

// summarize chooses from sentences.
func summarize(sentences []string, limits Limits) []string {
	if len(sentences) == 0 {
		return nil
	}
	most := limits.Sentences
	if most <= 0 {
		most = DefaultSentences
		if limits.Words > 0 {
			most = len(sentences)
		}
	}
	if within(sentences, most, limits.Words) {
		return sentences
	}
	return choose(sentences, most, limits.Words)
}

// sentencesOf returns the sentences of text that may be part of a summary.
func sentencesOf(text string) []string {
	var prose, headings []string
	for _, b := range blocksOf(text) {
		if b.heading {
			headings = append(headings, b.text)
		} else {
			prose = append(prose, splitSentences(b.text)...)
		}
	}
	if len(prose) == 0 {
		return headings
	}
	return prose
}

// within reports whether sentences are a summary as they are.
func within(sentences []string, most, words int) bool {
	if len(sentences) > most {
		return false
	}
	if words <= 0 {
		return true
	}
	total := 0
	for _, s := range sentences {
		total += countWords(s)
	}
	return total <= words
}

// Layout returns the pieces that sentences are written in, one for each, and that
// put together are the summary: a list if limits.Bullets is set, else a paragraph.
// A sentence that ends without a mark, such as a list item, ends its line.
func (l Limits) Layout(sentences []string) []string {
	pieces := make([]string, len(sentences))
	for i, s := range sentences {
		switch {
		case l.Bullets && i > 0:
			pieces[i] = "\n- " + s
		case l.Bullets:
			pieces[i] = "- " + s
		case i > 0:
			pieces[i] = gap(sentences[i-1]) + s
		default:
			pieces[i] = s
		}
	}
	return pieces
}

// gap is what stands between a sentence and the next.
func gap(sentence string) string {
	last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(sentence, closers))
	switch {
	case !isStop(last):
		return "\n"
	case strings.ContainsRune(denseStops, last):
		return ""
	}
	return " "
}
