package interop

import (
	"errors"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/azure"
	"github.com/openai/openai-go/v3/conversations"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// clients are OpenAI's and its Azure one.
var clients = map[string]func(url string) openai.Client{
	"OpenAI": func(url string) openai.Client {
		return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(scriptedKey), option.WithMaxRetries(0))
	},
	"Azure": func(url string) openai.Client {
		return openai.NewClient(azure.WithEndpoint(url, "2025-04-01-preview"), azure.WithAPIKey(scriptedKey), azure.WithUnsafeAllowHTTP(), option.WithMaxRetries(0))
	},
}

// TestResponses: a response created and streamed, with a call and its result, found again, listed and deleted.
func TestResponses(t *testing.T) {
	for name, connect := range clients {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(newScripted())
			defer srv.Close()
			respond(t, connect(srv.URL))
			converse(t, connect(srv.URL))
		})
	}
}

func respond(t *testing.T, client openai.Client) {
	ctx := t.Context()
	tool := responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: toolName, Strict: param.NewOpt(false),
		Parameters: map[string]any{"type": "object", "properties": map[string]any{toolParam: map[string]any{"type": "string"}}}}}
	ask := responses.ResponseNewParams{Model: "test-model", Tools: []responses.ToolUnionParam{tool},
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Weather in Paris?")}}
	plain, err := client.Responses.New(ctx, ask)
	if err != nil {
		t.Fatal(err)
	}
	stream := client.Responses.NewStreaming(ctx, ask)
	var types []string
	var last responses.Response
	for n := int64(0); stream.Next(); n++ {
		e := stream.Current()
		if e.SequenceNumber != n {
			t.Errorf("event %d is numbered %d", n, e.SequenceNumber)
		}
		types, last = append(types, e.Type), e.Response
	}
	if err := stream.Err(); err != nil || types[0] != "response.created" || types[len(types)-1] != "response.completed" {
		t.Fatalf("%v, %v", types, err)
	}
	var callID string
	for _, r := range []*responses.Response{plain, &last} {
		i := slices.IndexFunc(r.Output, func(o responses.ResponseOutputItemUnion) bool { return o.Type == "function_call" })
		if i < 0 || r.Output[i].Name != toolName || r.Output[i].Arguments.OfString != `{"city":"Paris"}` {
			t.Fatalf("%s", r.RawJSON())
		}
		callID = r.Output[i].CallID
	}
	result := responses.ResponseInputItemParamOfFunctionCallOutput("sunny")
	result.OfFunctionCallOutput.CallID = param.NewOpt(callID)
	next, err := client.Responses.New(ctx, responses.ResponseNewParams{Model: "test-model", PreviousResponseID: param.NewOpt(last.ID), Tools: ask.Tools,
		Input: responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{result}}})
	if err != nil || next.OutputText() != "The tool says: sunny" || next.PreviousResponseID != last.ID {
		t.Fatalf("%v, %v", next, err)
	}
	if got, err := client.Responses.Get(ctx, next.ID, responses.ResponseGetParams{}); err != nil || got.OutputText() != next.OutputText() {
		t.Errorf("%v, %v", got, err)
	}
	pages := client.Responses.InputItems.ListAutoPaging(ctx, next.ID, responses.InputItemListParams{Limit: param.NewOpt(int64(1)), Order: "asc"})
	var items []string
	for pages.Next() {
		items = append(items, pages.Current().Type)
	}
	if err := pages.Err(); err != nil || len(items) < 3 || items[0] != "message" || items[len(items)-1] != "function_call_output" {
		t.Errorf("%v, %v", items, err)
	}
	window, err := client.Responses.Compact(ctx, responses.ResponseCompactParams{Model: "test-model", PreviousResponseID: param.NewOpt(next.ID)})
	if err != nil || len(window.Output) != 2 || window.Output[0].Type != "message" || window.Output[1].Type != "compaction" || window.Output[1].EncryptedContent == "" {
		t.Errorf("%v, %v", window, err)
	}
	if err := client.Responses.Delete(ctx, next.ID); err != nil {
		t.Error(err)
	}
	var e *openai.Error
	if _, err := client.Responses.Get(ctx, next.ID, responses.ResponseGetParams{}); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("%v", err)
	}
	if _, err := client.Responses.Cancel(ctx, plain.ID); !errors.As(err, &e) || e.StatusCode != 400 {
		t.Errorf("%v", err)
	}
}

// converse makes a conversation and two responses on it, and looks through its items.
func converse(t *testing.T, client openai.Client) {
	ctx := t.Context()
	said := func(text string) responses.ResponseInputItemUnionParam {
		return responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser)
	}
	c, err := client.Conversations.New(ctx, conversations.ConversationNewParams{Metadata: shared.Metadata{"topic": "tests"},
		Items: []responses.ResponseInputItemUnionParam{said("Hello.")}})
	if err != nil || c.ID == "" {
		t.Fatalf("%v, %v", c, err)
	}
	ask := responses.ResponseNewParams{Model: "test-model", Conversation: responses.ResponseNewParamsConversationUnion{OfString: param.NewOpt(c.ID)},
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("One.")}}
	first, err := client.Responses.New(ctx, ask)
	if err != nil || first.Conversation.ID != c.ID {
		t.Fatalf("%v, %v", first, err)
	}
	ask.Conversation = responses.ResponseNewParamsConversationUnion{OfConversationObject: &responses.ResponseConversationParam{ID: c.ID}}
	stream := client.Responses.NewStreaming(ctx, ask)
	for stream.Next() {
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	pages := client.Conversations.Items.ListAutoPaging(ctx, c.ID, conversations.ItemListParams{Limit: param.NewOpt(int64(2)), Order: "asc"})
	var ids []string
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if err := pages.Err(); err != nil || len(ids) != 5 || ids[2] != first.Output[0].ID {
		t.Errorf("%v, %v", ids, err)
	}
	added, err := client.Conversations.Items.New(ctx, c.ID, conversations.ItemNewParams{Items: []responses.ResponseInputItemUnionParam{said("More.")}})
	if err != nil || len(added.Data) != 1 || added.LastID != added.Data[0].ID {
		t.Fatalf("%v, %v", added, err)
	}
	if got, err := client.Conversations.Items.Get(ctx, c.ID, added.LastID, conversations.ItemGetParams{}); err != nil || got.Role != "user" {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := client.Conversations.Items.Delete(ctx, c.ID, added.LastID); err != nil || got.ID != c.ID {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := client.Conversations.Update(ctx, c.ID, conversations.ConversationUpdateParams{Metadata: shared.Metadata{"topic": "more"}}); err != nil || got.ID != c.ID {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := client.Conversations.Delete(ctx, c.ID); err != nil || !got.Deleted {
		t.Errorf("%v, %v", got, err)
	}
	var e *openai.Error
	if _, err := client.Conversations.Get(ctx, c.ID); !errors.As(err, &e) || e.StatusCode != 404 {
		t.Errorf("%v", err)
	}
	if _, err := client.Responses.New(ctx, ask); !errors.As(err, &e) || e.StatusCode != 404 || e.Code != "conversation_not_found" {
		t.Errorf("%v", err)
	}
}

// TestBackground: a response in the background is followed, left, resumed from where it was left, and cancelled.
func TestBackground(t *testing.T) {
	for name, connect := range clients {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(newScripted())
			defer srv.Close()
			inBackground(t, connect(srv.URL))
		})
	}
}

func inBackground(t *testing.T, client openai.Client) {
	ctx := t.Context()
	ask := responses.ResponseNewParams{Model: "test-model", Background: param.NewOpt(true), Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Hi")}}
	r, err := client.Responses.New(ctx, ask)
	if err != nil || r.Status != "queued" || !r.Background {
		t.Fatalf("%v, %v", r, err)
	}
	for r.Status == "queued" || r.Status == "in_progress" {
		if r, err = client.Responses.Get(ctx, r.ID, responses.ResponseGetParams{}); err != nil {
			t.Fatal(err)
		}
	}
	if r.Status != "completed" || r.OutputText() != "Hello, wörld" {
		t.Errorf("%s", r.RawJSON())
	}
	if r, err := client.Responses.Cancel(ctx, r.ID); err != nil || r.Status != "completed" {
		t.Errorf("%v, %v", r, err)
	}
	ask.Model = "slow"
	stream := client.Responses.NewStreaming(ctx, ask)
	var events []string
	next := func(n int) (e responses.ResponseStreamEventUnion) {
		for range n {
			if !stream.Next() {
				return e
			}
			if e = stream.Current(); e.SequenceNumber != int64(len(events)) {
				t.Errorf("event %d is numbered %d", len(events), e.SequenceNumber)
			}
			events = append(events, e.Type)
		}
		return e
	}
	id := next(1).Response.ID
	next(3)
	if err := stream.Close(); err != nil {
		t.Error(err)
	}
	after := responses.ResponseGetParams{StartingAfter: param.NewOpt(int64(3))}
	stream = client.Responses.GetStreaming(ctx, id, after, option.WithQuery("stream", "true")) // by itself it says so in a body, which no GET has
	next(1000)
	if err := stream.Err(); err != nil || !slices.Equal(events[:3], []string{"response.created", "response.queued", "response.in_progress"}) || events[len(events)-1] != "response.completed" {
		t.Errorf("%v, %v", events, err)
	}
	stream, events = client.Responses.NewStreaming(ctx, ask), nil
	id = next(1).Response.ID
	for range 2 {
		if r, err := client.Responses.Cancel(ctx, id); err != nil || r.Status != "cancelled" {
			t.Errorf("%v, %v", r, err)
		}
	}
	if last := next(1000); last.Type != "response.incomplete" || last.Response.Status != "cancelled" {
		t.Errorf("%v", last)
	}
}
