"""Models of images as users of PyTorch have them: timm's, and small ones of CIFAR written out."""
import sizes


def residual_net():
    """3x3 convolutions with batch norm; a pool begins each stage, and two more go around a shortcut."""
    import torch
    from torch import nn

    def layer(wide, out, pool=False):
        parts = [nn.Conv2d(wide, out, 3, padding=1, bias=False)]
        return nn.Sequential(*parts, *([nn.MaxPool2d(2)] if pool else []), nn.BatchNorm2d(out), nn.ReLU(inplace=True))

    class Residual(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.one = layer(width, width)
            self.two = nn.Sequential(nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width))

        def forward(self, x):
            return torch.relu(x + self.two(self.one(x)))

    widths = (64, 64, 256, 256)
    stages = [part for wide, out in zip(widths, widths[1:]) for part in (layer(wide, out, True), Residual(out))]
    return nn.Sequential(layer(3, 64), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def compact_transformer():
    """CCT-2/3x2 of Hassani et al. 2021 with fused attention; nothing is dropped."""
    import torch
    from torch import nn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.pre_norm, self.norm1 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width))

        def forward(self, x):
            n, tokens, width = x.shape
            q, k, v = self.qkv(self.pre_norm(x)).view(n, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            heads = functional.scaled_dot_product_attention(q, k, v)
            x = self.norm1(x + self.proj(heads.transpose(1, 2).reshape(n, tokens, width)))
            return x + self.mlp(x)

    class Cct(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokenizer = nn.Sequential(*(part for wide, out in ((3, 64), (64, 128)) for part in (
                nn.Conv2d(wide, out, 3, padding=1, bias=False), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))))
            self.positions = nn.Parameter(torch.zeros(1, 64, 128))
            self.blocks = nn.Sequential(Block(128, 2), Block(128, 2))
            self.norm, self.pool, self.fc = nn.LayerNorm(128), nn.Linear(128, 1), nn.Linear(128, 10)

        def forward(self, images):
            x = self.tokenizer(images).flatten(2).transpose(1, 2) + self.positions
            x = self.norm(self.blocks(x))
            return self.fc((torch.softmax(self.pool(x), 1).transpose(1, 2) @ x).squeeze(1))

    return Cct()


WRITTEN_OUT = {"residual_net": residual_net, "compact_transformer": compact_transformer}


def make(model, classes):
    """One of those above or of timm by its name, or timm's VisionTransformer or SwinTransformer of these sizes."""
    import timm
    if isinstance(model, str):
        return WRITTEN_OUT[model]() if model in WRITTEN_OUT else timm.create_model(model, num_classes=classes)
    kind = timm.models.SwinTransformer if "window_size" in model else timm.models.VisionTransformer
    return kind(**model, num_classes=classes)


def of_case(case):
    """The model of a case that classifies, its images of a batch and their edge."""
    model, batch, edge, classes = sizes.CLASSIFY[case]
    return make(model, classes).eval(), batch, edge
