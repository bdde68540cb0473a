#!/usr/bin/env python3
"""Writes the files of this folder with Pillow and numpy (made with 13.0.0 and 2.4.6). Tests read them; nothing but this
needs Python. For NAME.png and NAME.jpg, NAME.npy holds the pixels that Pillow has, uint8 [height, width, channels]."""
import numpy as np
from PIL import Image

H, W = 12, 17
y, x = np.mgrid[0:H, 0:W]
# Smooth, so that JPEG loses little, and different in every channel.
smooth = np.stack([x * 255 / (W - 1), y * 255 / (H - 1), 127 + 100 * np.sin(x / 3) * np.cos(y / 4)], 2).round().astype(np.uint8)
# Every pixel another.
rough = ((y[..., None] * 31 + x[..., None] * 7 + np.arange(3) * 50) % 256).astype(np.uint8)


def save(name, image, convert=None, **options):
    image.save(name, **options)
    pixels = np.array(Image.open(name).convert(convert or image.mode))
    np.save(name.rsplit(".", 1)[0] + ".npy", pixels.reshape(H, W, -1))


save("rgb.png", Image.fromarray(rough))
save("grey.png", Image.fromarray(rough[..., 0]))
save("grey_of_rgb.png", Image.fromarray(rough), convert="L")
save("palette.png", Image.fromarray(smooth).quantize(16), convert="RGB")
save("one_bit.png", Image.fromarray((rough[..., 0] > 127)), convert="L")
save("colour.jpg", Image.fromarray(smooth), quality=95)
save("grey_of_colour.jpg", Image.fromarray(smooth), convert="L", quality=95)
save("grey_jpeg.jpg", Image.fromarray(smooth[..., 1]), quality=95)
save("progressive.jpg", Image.fromarray(smooth), quality=95, progressive=True)

# Fully opaque and fully transparent pixels only: the others depend on how they are laid over black.
alpha = np.where((x + y) % 2 == 0, 255, 0).astype(np.uint8)
rgba = np.concatenate([rough, alpha[..., None]], 2)
Image.fromarray(rgba).save("alpha.png")
np.save("alpha.npy", rough * (alpha[..., None] // 255))

# 16 bits, of which the upper 8 are those of rough.
grey16 = rough[..., 0].astype(np.uint16) * 257
Image.fromarray(grey16).save("sixteen_bits.png")
np.save("sixteen_bits.npy", rough[..., :1])

Image.fromarray(smooth).convert("CMYK").save("refused_cmyk.jpg")

# smooth, resized by Pillow.
for h, w in [(5, 6), (24, 34)]:
    np.save(f"resized_{h}x{w}.npy", np.array(Image.fromarray(smooth).resize((w, h), Image.Resampling.BILINEAR)))
Image.fromarray(smooth).save("smooth.png")

Image.fromarray(rough[:3, :4]).save("other_size.png")
