package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
)

// protoField is one field of a protobuf message.
type protoField struct {
	number int
	value  uint64 // of a varint or fixed field
	data   []byte // of a length-delimited one
}

func (f protoField) float() float32 { return math.Float32frombits(uint32(f.value)) }

// protoFields calls field for each field of a message. The data is shared with msg.
func protoFields(msg []byte, field func(protoField) error) error {
	for len(msg) > 0 {
		tag, n := binary.Uvarint(msg)
		if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
			return fmt.Errorf("it is not a protobuf message: bad field tag")
		}
		msg = msg[n:]
		f := protoField{number: int(tag >> 3)}
		switch tag & 7 {
		case 0:
			if f.value, n = binary.Uvarint(msg); n <= 0 {
				return fmt.Errorf("field %d: bad number", f.number)
			}
		case 1:
			if n = 8; len(msg) >= n {
				f.value = binary.LittleEndian.Uint64(msg)
			}
		case 2:
			size, m := binary.Uvarint(msg)
			if m <= 0 || size > uint64(len(msg)-m) {
				return fmt.Errorf("field %d is longer than the message", f.number)
			}
			n = m + int(size)
			f.data = msg[m:n]
		case 5:
			if n = 4; len(msg) >= n {
				f.value = uint64(binary.LittleEndian.Uint32(msg))
			}
		default:
			return fmt.Errorf("field %d has wire type %d", f.number, tag&7)
		}
		if n > len(msg) {
			return fmt.Errorf("field %d is longer than the message", f.number)
		}
		msg = msg[n:]
		if err := field(f); err != nil {
			return err
		}
	}
	return nil
}
