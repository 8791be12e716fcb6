package bedrock

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"loki/internal/chat"
	"loki/internal/provider"
	"loki/internal/provider/normalize"
	"loki/internal/provider/wire"
)

// maxTexts is how many texts the Cohere models take at once.
const maxTexts = 96

// titanRequests is how many requests run at once. Titan models take one text each.
const titanRequests = 4

// Embed implements [provider.Embedder] for the models of Cohere and Titan. Without
// texts it asks nobody.
func (c *Client) Embed(ctx context.Context, req provider.EmbedRequest) ([][]float32, chat.Usage, error) {
	if len(req.Texts) == 0 {
		return nil, chat.Usage{}, nil
	}
	m := wire.Lookup(c.model, req.Model)
	e := embedding{client: c, model: m, req: req}
	var batches []batch
	width := 1
	switch name := strings.ToLower(m.RealName + " " + req.Model); {
	case strings.Contains(name, "cohere.embed"):
		batches = e.cohereBatches()
	case strings.Contains(name, "titan-embed"):
		batches, width = e.titanBatches(), titanRequests
	default:
		return nil, chat.Usage{}, &provider.Error{
			Kind: provider.Invalid,
			Msg:  "model " + req.Model + " of client " + c.name + ": embeddings are known for the models cohere.embed and amazon.titan-embed",
		}
	}
	var err error
	if e.access, err = c.source.resolve(ctx); err != nil {
		return nil, chat.Usage{}, err
	}
	return e.run(ctx, batches, width)
}

// embedding is one call of Embed.
type embedding struct {
	client *Client
	model  wire.Model
	req    provider.EmbedRequest
	access access
}

// batch is one request, for some of the texts.
type batch struct {
	texts []string
	body  any
}

type cohereRequest struct {
	Texts     []string `json:"texts"`
	InputType string   `json:"input_type"`
}

type titanRequest struct {
	InputText string `json:"inputText"`
}

func (e embedding) cohereBatches() []batch {
	inputType := "search_document"
	if e.req.Query {
		inputType = "search_query"
	}
	var batches []batch
	for rest := e.req.Texts; len(rest) > 0; {
		n := min(len(rest), maxTexts)
		batches = append(batches, batch{rest[:n], cohereRequest{rest[:n], inputType}})
		rest = rest[n:]
	}
	return batches
}

func (e embedding) titanBatches() []batch {
	batches := make([]batch, len(e.req.Texts))
	for i, text := range e.req.Texts {
		batches[i] = batch{e.req.Texts[i : i+1], titanRequest{text}}
	}
	return batches
}

// embedded is what one request gave.
type embedded struct {
	vectors [][]float32
	usage   chat.Usage
	err     error
}

// run sends the batches, width at a time, and puts the vectors together. The first
// failure stops the others.
func (e embedding) run(ctx context.Context, batches []batch, width int) ([][]float32, chat.Usage, error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make([]embedded, len(batches)) // each is written by the one goroutine that took its index
	next := make(chan int)
	var failed error
	var once sync.Once
	var wg sync.WaitGroup
	for range min(width, len(batches)) {
		wg.Go(func() { // ends when next is closed
			for i := range next {
				results[i] = e.send(inner, batches[i])
				if err := results[i].err; err != nil {
					once.Do(func() { failed = err; cancel() })
				}
			}
		})
	}
	for i := range batches {
		next <- i // after a failure requests end at once
	}
	close(next)
	wg.Wait()
	if ctx.Err() != nil {
		return nil, chat.Usage{}, failure(ctx, e.client.asking(), ctx.Err())
	}
	if failed != nil {
		return nil, chat.Usage{}, failed
	}
	var vectors [][]float32
	var usage chat.Usage
	for _, r := range results {
		vectors = append(vectors, r.vectors...)
		usage = usage.Add(r.usage)
	}
	for _, v := range vectors {
		if len(v) == 0 || len(v) != len(vectors[0]) {
			return nil, chat.Usage{}, badEmbeddings("embeddings that are empty or differ in length")
		}
	}
	return vectors, usage, nil
}

func badEmbeddings(format string, args ...any) error {
	return &provider.Error{Kind: provider.BadReply, Msg: fmt.Sprintf(format, args...)}
}

func (e embedding) send(ctx context.Context, b batch) embedded {
	c := e.client
	body, err := json.Marshal(b.body)
	if err != nil {
		return embedded{err: &provider.Error{Kind: provider.Invalid, Msg: "the request cannot be written as JSON", Err: err}}
	}
	out, err := c.sdk.InvokeModel(ctx, &bedrockruntime.InvokeModelInput{
		ModelId: &e.model.RealName, Body: body, ContentType: aws.String("application/json"), Accept: aws.String("application/json"),
	}, c.options(e.access, wire.Call{API: wire.Embeddings, Model: e.req.Model, Patch: e.model.Patch}, false))
	if err != nil {
		return embedded{err: failure(ctx, c.asking(), err)}
	}
	vectors, tokens, err := readVectors(out.Body)
	if err != nil {
		return embedded{err: err}
	}
	if len(vectors) != len(b.texts) {
		return embedded{err: badEmbeddings("%d embeddings for %d texts", len(vectors), len(b.texts))}
	}
	return embedded{vectors: vectors, usage: normalize.InputUsage(max(tokens, countedTokens(out.ResultMetadata)), b.texts...)}
}

// readVectors reads the replies of both makers: embeddings is a list of vectors or
// an object of such lists by type, embedding a single vector. tokens is 0 if the
// reply does not say.
func readVectors(data []byte) (vectors [][]float32, tokens int, err error) {
	var reply struct {
		Embeddings json.RawMessage
		Embedding  []float32
		Tokens     int `json:"inputTextTokenCount"`
	}
	if json.Unmarshal(data, &reply) != nil {
		return nil, 0, wire.BadReply("the reply holds no embeddings", data)
	}
	var byType struct{ Float [][]float32 }
	switch {
	case reply.Embedding != nil:
		return [][]float32{reply.Embedding}, reply.Tokens, nil
	case json.Unmarshal(reply.Embeddings, &vectors) == nil && len(vectors) > 0:
		return vectors, reply.Tokens, nil
	case json.Unmarshal(reply.Embeddings, &byType) == nil && len(byType.Float) > 0:
		return byType.Float, reply.Tokens, nil
	}
	if err := wire.ReplyError(data); err != nil {
		return nil, 0, err
	}
	return nil, 0, wire.BadReply("the reply holds no embeddings", data)
}

// countedTokens returns the tokens that Bedrock counted, 0 if it does not say.
func countedTokens(m middleware.Metadata) int {
	resp, ok := awsmiddleware.GetRawResponse(m).(*smithyhttp.Response)
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(resp.Header.Get("X-Amzn-Bedrock-Input-Token-Count"))
	if err != nil {
		return 0
	}
	return max(0, n)
}
