package vision

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Processor prepares pictures for one model.
type Processor struct {
	family   string
	plan     func(w, h int) (Plan, error)
	filter   filter
	resample int  // its number
	patch    int  // pixels along a patch's side
	temporal int  // moments of a patch: a picture is the same in all
	merge    int  // patches along the side of a square that becomes one position
	squares  bool // patches of a square follow each other
	planes   bool // a patch is channels of rows, not rows of pixels
	table    [3][256]float32
	key      string // of all of these that change what a tower reads
	low      *Processor
}

// Family is the processor's name: qwen_vl, gemma3, gemma4, pixtral, lfm2_vl or idefics3.
func (p *Processor) Family() string { return p.family }

// Low is the processor for images at which a client wants to look with low detail, which is a matter of size alone.
func (p *Processor) Low() *Processor { return p.low }

// What an image becomes at most with low detail.
const (
	lowSide   = 512 // pixels, as OpenAI's API has it
	lowTokens = 70  // of gemma4: the fewest that its processor knows
)

// PatchSize is the number of pixels along a patch's side, and how many patches, along a side, become one position.
func (p *Processor) PatchSize() (pixels, merged int) { return p.patch, p.merge }

// PatchLen is the number of floats of a patch.
func (p *Processor) PatchLen() int { return 3 * p.temporal * p.patch * p.patch }

// Plan says what becomes of a picture of that size, seen upright, in pixels. Its error is an *Error: a shape that the
// processor does not take.
func (p *Processor) Plan(w, h int) (Plan, error) {
	plan, err := p.plan(w, h)
	if err != nil {
		return Plan{}, err
	}
	for i := range plan.Tiles {
		t := &plan.Tiles[i]
		gh, gw := t.height/p.patch, t.width/p.patch
		t.Grid = [3]int{1, gh, gw}
		t.Columns = (gw + p.merge - 1) / p.merge
		t.Positions = ((gh + p.merge - 1) / p.merge) * t.Columns
	}
	return plan, nil
}

// Files are a model's files that say how its pictures are prepared, each nil if the model has none.
type Files struct {
	Config       []byte // config.json
	Preprocessor []byte // preprocessor_config.json
	Processor    []byte // processor_config.json, in which newer models have the other one
}

// settings are the keys of preprocessor_config.json.
type settings struct {
	Type          string    `json:"image_processor_type"`
	DoResize      *bool     `json:"do_resize"`
	DoRescale     *bool     `json:"do_rescale"`
	DoNormalize   *bool     `json:"do_normalize"`
	RescaleFactor *float64  `json:"rescale_factor"`
	Mean          []float64 `json:"image_mean"`
	Std           []float64 `json:"image_std"`
	Resample      *int      `json:"resample"`
	Size          extent    `json:"size"`
	Patch         extent    `json:"patch_size"`
	Temporal      *int      `json:"temporal_patch_size"`
	Merge         *int      `json:"merge_size"`
	MinPixels     *int      `json:"min_pixels"` // of qwen, older than its "size"
	MaxPixels     *int      `json:"max_pixels"`

	PanAndScan *bool    `json:"do_pan_and_scan"` // of gemma3
	MinCrop    *int     `json:"pan_and_scan_min_crop_size"`
	MostCrops  *int     `json:"pan_and_scan_max_num_crops"`
	CropRatio  *float64 `json:"pan_and_scan_min_ratio_to_activate"`

	SoftTokens *int `json:"max_soft_tokens"` // of gemma4
	Pool       *int `json:"pooling_kernel_size"`

	Split    *bool  `json:"do_image_splitting"` // of idefics3 and lfm2_vl
	MaxImage extent `json:"max_image_size"`

	Downsample   *int     `json:"downsample_factor"` // of lfm2_vl
	MinTiles     *int     `json:"min_tiles"`
	MaxTiles     *int     `json:"max_tiles"`
	Thumbnail    *bool    `json:"use_thumbnail"`
	MinTokens    *int     `json:"min_image_tokens"`
	MaxTokens    *int     `json:"max_image_tokens"`
	EncoderPatch *int     `json:"encoder_patch_size"`
	Tile         *int     `json:"tile_size"`
	Tolerance    *float64 `json:"max_pixels_tolerance"`

	low bool // not of the file: see Processor.Low
}

// extent is a size: a number for both sides, or an object with some of these keys.
type extent struct {
	Shortest int `json:"shortest_edge"`
	Longest  int `json:"longest_edge"`
	Height   int `json:"height"`
	Width    int `json:"width"`
}

func (e *extent) UnmarshalJSON(b []byte) error {
	var side int
	if json.Unmarshal(b, &side) == nil {
		*e = extent{Height: side, Width: side}
		return nil
	}
	type plain extent
	return json.Unmarshal(b, (*plain)(e))
}

// model is what config.json says of the tower.
type model struct {
	Type        string `json:"model_type"`
	MergeSize   int    `json:"spatial_merge_size"`
	Scale       int    `json:"scale_factor"`
	ImageTokens int    `json:"mm_tokens_per_image"`
	SoftTokens  int    `json:"vision_soft_tokens_per_image"`
	Downsample  int    `json:"downsample_factor"`
	Vision      struct {
		Patch     int `json:"patch_size"`
		Temporal  int `json:"temporal_patch_size"`
		MergeSize int `json:"spatial_merge_size"`
		Pool      int `json:"pooling_kernel_size"`
	} `json:"vision_config"`
}

// family is how the pictures of some models are prepared: make fills in a processor whose defaults, those of the family's
// class in transformers, stand.
type family struct {
	resample  int
	mean, std [3]float64
	normalize bool
	make      func(p *Processor, s *settings, m *model) error
}

var (
	clipMean = [3]float64{0.48145466, 0.4578275, 0.40821073}
	clipStd  = [3]float64{0.26862954, 0.26130258, 0.27577711}
	half     = [3]float64{0.5, 0.5, 0.5}
)

var families = map[string]family{
	"qwen_vl":  {3, clipMean, clipStd, true, newQwen},
	"gemma3":   {2, half, half, true, newGemma3},
	"gemma4":   {3, [3]float64{}, [3]float64{1, 1, 1}, false, newGemma4},
	"pixtral":  {3, clipMean, clipStd, true, newPixtral},
	"lfm2_vl":  {2, half, half, true, newLFM2},
	"idefics3": {1, half, half, true, newIdefics3},
}

// familyOf is the family of a model_type, or of an image_processor_type in lower case and without what follows its name.
var familyOf = map[string]string{
	"qwen2_vl": "qwen_vl", "qwen2_5_vl": "qwen_vl", "qwen3_vl": "qwen_vl", "qwen3_vl_moe": "qwen_vl", "qwen3_5": "qwen_vl",
	"qwen3_5_moe": "qwen_vl", "gemma3": "gemma3", "gemma4": "gemma4", "mistral3": "pixtral", "pixtral": "pixtral",
	"lfm2_vl": "lfm2_vl", "lfm2-vl": "lfm2_vl", "idefics3": "idefics3", "smolvlm": "idefics3",
	"qwen2vl": "qwen_vl", "qwen3vl": "qwen_vl", "lfm2vl": "lfm2_vl",
}

// NewProcessor reads a model's files. Its error names the file and the key.
func NewProcessor(f Files) (*Processor, error) {
	var m model
	if err := unmarshal("config.json", f.Config, &m); err != nil {
		return nil, err
	}
	var s settings
	file := "preprocessor_config.json"
	if f.Preprocessor != nil {
		if err := unmarshal(file, f.Preprocessor, &s); err != nil {
			return nil, err
		}
	} else if f.Processor != nil {
		file = "processor_config.json"
		var outer struct {
			Image *settings `json:"image_processor"`
		}
		if err := unmarshal(file, f.Processor, &outer); err != nil {
			return nil, err
		}
		if outer.Image != nil {
			s = *outer.Image
		}
	}
	name := familyOf[m.Type]
	if name == "" {
		kind, _, _ := strings.Cut(strings.ToLower(s.Type), "imageprocessor")
		name = familyOf[kind]
	}
	if name == "" {
		known := slices.Sorted(maps.Keys(families))
		return nil, fmt.Errorf("%s: no image processor is known for model_type %.40q and image_processor_type %.40q: known families are %s",
			file, m.Type, s.Type, strings.Join(known, ", "))
	}
	p, err := families[name].processor(name, &s, &m)
	if err == nil {
		s.low = true
		p.low, err = families[name].processor(name, &s, &m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	p.low.low = p.low
	return p, nil
}

func unmarshal(file string, b []byte, to any) error {
	if b == nil {
		return nil
	}
	if err := json.Unmarshal(b, to); err != nil {
		return fmt.Errorf("%s: %.200w", file, err)
	}
	return nil
}

func (f family) processor(name string, s *settings, m *model) (*Processor, error) {
	p := &Processor{family: name, temporal: 1, merge: 1, planes: true}
	if s.DoResize != nil && !*s.DoResize {
		return nil, errors.New("do_resize is false: pictures have to be resized for the tower")
	}
	resample := or(s.Resample, f.resample)
	var ok bool
	if p.filter, ok = filters[resample]; !ok {
		return nil, fmt.Errorf("resample is %d: 1 (Lanczos), 2 (bilinear) and 3 (bicubic) are known", resample)
	}
	p.resample = resample
	if err := f.values(p, s); err != nil {
		return nil, err
	}
	if err := f.make(p, s, m); err != nil {
		return nil, err
	}
	if err := errors.Join(within("patch_size", p.patch, 1, 128), within("merge_size", p.merge, 1, 16),
		within("temporal_patch_size", p.temporal, 1, 8)); err != nil {
		return nil, err
	}
	p.key = fmt.Sprintf("%s %d %d %d %t %t %v\n", name, p.patch, p.temporal, p.merge, p.squares, p.planes, p.ends())
	return p, nil
}

// ends are the first and last value of each channel's table: the table is a line between them.
func (p *Processor) ends() (e [6]uint32) {
	for c := range 3 {
		e[2*c], e[2*c+1] = math.Float32bits(p.table[c][0]), math.Float32bits(p.table[c][255])
	}
	return e
}

// values makes the table of what each value of a channel becomes, rounded where transformers' NumPy code rounds.
func (f family) values(p *Processor, s *settings) error {
	mean, std := f.mean, f.std
	for _, list := range []struct {
		key  string
		from []float64
		to   *[3]float64
	}{{"image_mean", s.Mean, &mean}, {"image_std", s.Std, &std}} {
		if list.from == nil {
			continue
		}
		if len(list.from) != 3 {
			return fmt.Errorf("%s has %d numbers, 3 are needed", list.key, len(list.from))
		}
		copy(list.to[:], list.from)
	}
	factor := or(s.RescaleFactor, 1.0/255)
	if !or(s.DoRescale, true) {
		factor = 1
	}
	normalize := or(s.DoNormalize, f.normalize)
	for c := range 3 {
		m, d := float32(mean[c]), float32(std[c])
		if normalize && d == 0 {
			return errors.New("image_std has a zero")
		}
		for i := range 256 {
			v := float32(float64(i) * factor)
			if normalize {
				v = float32(v-m) / d
			}
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return errors.New("rescale_factor, image_mean and image_std make numbers that are none")
			}
			p.table[c][i] = v
		}
	}
	return nil
}

func or[T any](v *T, other T) T {
	if v != nil {
		return *v
	}
	return other
}

// first is the first number that is not zero.
func first(v ...int) int {
	for _, n := range v {
		if n != 0 {
			return n
		}
	}
	return 0
}

func within(key string, v, least, most int) error {
	if v < least || v > most {
		return fmt.Errorf("%s is %d, it must be between %d and %d", key, v, least, most)
	}
	return nil
}

// agree says that two files tell different sizes of the tower's patches.
func agree(key string, v, config int) error {
	if v != 0 && config != 0 && v != config {
		return fmt.Errorf("%s is %d, but %d in config.json", key, v, config)
	}
	return nil
}

// Sizes that a file can ask for: a side in pixels, and the pixels of what a tower is given.
const (
	maxSide       = 1 << 14
	maxPrepared   = 1 << 26
	maxTilesAsked = 256
)
