"""A network of pytorch-frame under GSE, its embedding initialized by a wide model (needs pytorch-frame)."""

import torch
from tabsym_torch import GSE
from tabsym_torch.frame import WideStypeEncoder
from torch_frame import stype
from torch_frame.data import DataLoader, Dataset
from torch_frame.nn import ResNet

from tabsym import WideRegressor
from tabsym.datasets import make_retail

torch.manual_seed(0)
table = make_retail(4000, random_state=0)
table["sales"] = (table["sales"] - table["sales"].mean()) / table["sales"].std()
columns = ["store", "colour", "size", "group"]
kinds = dict.fromkeys(columns, stype.categorical) | {"sales": stype.numerical}
data = Dataset(table[[*columns, "sales"]], col_to_stype=kinds, target_col="sales")
data.materialize()
train, test = data[:3000], data[3000:]

wide = WideRegressor(interactions=None, count_effect=False).fit(table[columns].iloc[:3000], table["sales"].iloc[:3000])
order = data.tensor_frame.col_names_dict[stype.categorical]
model = ResNet(
    channels=16,
    out_channels=1,
    num_layers=2,
    col_stats=data.col_stats,
    col_names_dict=data.tensor_frame.col_names_dict,
    stype_encoder_dict={stype.categorical: WideStypeEncoder(model=wide, columns=order)},
)
optimizer = GSE(torch.optim.Adam(model.parameters(), lr=0.003), model)

for epoch in range(5):
    model.train()
    for batch in DataLoader(train.tensor_frame, batch_size=128, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch)[:, 0], batch.y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        error = (model(test.tensor_frame)[:, 0] - test.tensor_frame.y).square().mean().sqrt()
    print(f"pass {epoch + 1}: RMSE {error:.3f} of the test rows' spread {test.tensor_frame.y.std():.3f}")
