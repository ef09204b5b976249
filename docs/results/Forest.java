import com.yahoo.labs.samoa.instances.Attribute;
import com.yahoo.labs.samoa.instances.DenseInstance;
import com.yahoo.labs.samoa.instances.Instance;
import com.yahoo.labs.samoa.instances.Instances;
import com.yahoo.labs.samoa.instances.InstancesHeader;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
import java.util.List;
import moa.classifiers.meta.AdaptiveRandomForest;

/**
 * MOA's adaptive random forest as a process, for opponents.py: java Forest
 * FEATURES CLASSES TREES SEED. A request is a count and that many rows, of float64 in the
 * order of the network. Rows with a class after the features are learnt, one by one; a
 * negative count announces rows to predict, which are answered by votes for each class.
 */
public class Forest {
    public static void main(String[] arguments) throws Exception {
        int features = Integer.parseInt(arguments[0]), classes = Integer.parseInt(arguments[1]);
        List<Attribute> attributes = new ArrayList<>();
        for (int i = 0; i < features; i++) attributes.add(new Attribute("x" + i));
        List<String> names = new ArrayList<>();
        for (int i = 0; i < classes; i++) names.add("c" + i);
        attributes.add(new Attribute("class", names));
        Instances rows = new Instances("rows", attributes, 0);
        rows.setClassIndex(features);
        InstancesHeader header = new InstancesHeader(rows);

        AdaptiveRandomForest forest = new AdaptiveRandomForest();
        forest.ensembleSizeOption.setValue(Integer.parseInt(arguments[2]));
        forest.setRandomSeed(Integer.parseInt(arguments[3]));
        forest.setModelContext(header);
        forest.prepareForUse();

        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out = new DataOutputStream(new BufferedOutputStream(System.out, 1 << 16));
        for (int n = in.readInt(); n != 0; n = in.readInt()) {
            for (int i = 0; i < Math.abs(n); i++) {
                Instance row = new DenseInstance(1, new double[features + 1]);
                row.setDataset(header);
                for (int j = 0; j < features; j++) row.setValue(j, in.readDouble());
                if (n > 0) {
                    row.setClassValue(in.readDouble());
                    forest.trainOnInstance(row);
                    continue;
                }
                double[] votes = forest.getVotesForInstance(row);
                for (int c = 0; c < classes; c++) out.writeDouble(c < votes.length ? votes[c] : 0);
            }
            out.flush();
        }
    }
}
